"""How does regret go with compute?"""

from collections.abc import Sequence

from feelgood.engine.results import AgentResult
from feelgood.report.chain_costs import chain_cost
from showdown.book import Book, grid, section
from showdown.effects import Effect, effect, seeds_text
from showdown.families import Family, Word
from showdown.figures import scatter
from showdown.pairing import in_order
from showdown.question import Question
from showdown.wording import count, enumeration, number
from showdown.yardsticks import dagger

STUDY = "question-compute"


def _stepping(book: Book) -> dict[str, list[AgentResult]]:
    """By agent, its runs from few to many steps."""
    runs: dict[str, list[AgentResult]] = {}
    for r in in_order(book.shelf.of(STUDY)):
        if "steps" in r.settings:
            runs.setdefault(r.agent, []).append(r)
    return {agent: sorted(own, key=lambda r: r.settings["steps"]) for agent, own in runs.items()}


def fewer(book: Book) -> list[Effect]:
    """Fewer inner steps beside the most."""
    return [
        effect(
            f"{count(r.settings['steps'], 'step')} beside {own[-1].settings['steps']}", r, own[-1]
        )
        for own in _stepping(book).values()
        for r in own[:-1]
    ]


def families(book: Book) -> list[Family]:
    """One."""
    return [Family.of("fewer steps beside the most", fewer(book))]


def says(book: Book, found: Sequence[Family]) -> list[str]:
    """From how many steps on nothing is lost, agent by agent."""
    out = []
    for agent, runs in _stepping(book).items():
        own = [m for m in found[0].members if m.effect.agent == agent]
        worse = [m.effect.changed for m in own if m.word() is Word.HURTS]
        steps = [str(r.settings["steps"]) for r in worse if r is not None]
        most = runs[-1].settings["steps"]
        told = f"higher regret with {enumeration(steps)}" if steps else "none is shown to be worse"
        out.append(f"`{agent}`, steps per round beside {most}: {told}.")
    return out


def more(book: Book) -> list[str]:
    """Costs and the picture."""
    results = in_order(book.shelf.of(STUDY))
    if not results:
        return []
    rows = []
    for agent, runs in _stepping(book).items():
        for r in runs:
            if r.settings["steps"] in (1, 5, 25, 100):
                cost = chain_cost(r)
                rows.append(
                    [
                        f"`{agent}`",
                        str(r.settings["steps"]),
                        "–" if cost.gradients is None else f"{cost.gradients:,.0f}",
                        f"{cost.seconds:.3g}",
                        f"{number(r.regret.mean)}{dagger(r, book.yardsticks)}",
                    ]
                )
    drawn = [(r.agent, chain_cost(r).gradients or 0.0, r) for r in results]
    picture = book.figure(
        "compute",
        "Mean final regret against gradient evaluations per chain on linear-20, with 95 % "
        "intervals.",
        lambda: scatter(
            drawn, "gradient evaluations per chain, logarithmic", connect=True, form="~s"
        ),
    )
    header = ("agent", "steps per round", "gradients", "seconds per chain", "regret")
    about = (
        "Seconds are a chain's share of its run on one machine, beside other runs. Pairs of agents "
        f"have {seeds_text(fewer(book))}."
    )
    return [section("Costs", about, grid(header, rows)), section("Figure", picture)]


QUESTION = Question(
    name="compute",
    place=90,
    title="How does regret go with compute?",
    asks=(
        "Inner steps per round on linear-20, with sound steps. Each number of steps "
        "stands beside the most. Chains go on from where the round before left them, so that few "
        "steps per round may do."
    ),
    studies=(STUDY,),
    families=families,
    says=says,
    more=more,
)
