"""What follows from the worlds: bonus and temperature elsewhere, and one recommendation."""

import numpy as np

from feelgood.engine.results import AgentResult
from feelgood.stats.intervals import Estimate, bootstrap
from feelgood.stats.studentised import StudentisedMean
from showdown import world_frontier, world_wrong
from showdown.book import Book, items, section
from showdown.effects import FEWEST_SEEDS, enumeration, estimate, number
from showdown.families import tally_sentence
from showdown.questions import bonus_temperature, stuck_networks
from showdown.stuck_seeds import freed_and_bound
from showdown.wording import interval
from showdown.world_frontier import DEFAULT, HEAT
from showdown.world_runs import FALLING, HOT, Worst, difference, largest_regrets

#: The paper's linear bandits, drawn as the prior says.
LINEAR = ("linear-20", "linear-40")


# Other questions -----------------------------------------------------------------------------


def elsewhere(book: Book) -> list[str]:
    """What two other pages say of the bonus, with links."""
    found = [_temperature(book), _networks(book)]
    return [section("Cold agents and stuck networks", items([f for f in found if f]))] * any(found)


def _temperature(book: Book) -> str:
    families = bonus_temperature.families(book)
    if not families or not families[0].members:
        return ""
    told = tally_sentence("A bonus on cold draws", families[0])
    cold = bonus_temperature.stuck(book)[bonus_temperature.COLD]
    freed, bound = freed_and_bound(cold)
    return (
        f"{told} It frees stuck seeds in {freed} of {len(cold)} settings and binds some in "
        f"{bound}: [all temperatures](bonus-temperature.md)."
    )


def _networks(book: Book) -> str:
    runs = stuck_networks.Runs(book)
    judged = stuck_networks.judged_seeds(runs) if runs.all else {}
    bonus, alike = (judged.get(n, []) for n in (stuck_networks.BONUS, stuck_networks.ALIKE))
    if not bonus or not alike:
        return ""
    freed, bound = freed_and_bound(bonus)
    return (
        f"Networks on adult: the bonus binds seeds to a wrong arm in {bound} of {len(bonus)} "
        f"settings and frees some in {freed}. The same weight on both arms alike, beside it, frees "
        f"some in {freed_and_bound(alike)[0]} of {len(alike)}: [why](stuck-networks.md)."
    )


# Recommendation ------------------------------------------------------------------------------


def part(book: Book) -> str:
    """What to do, from the worst cases and from what both insurances cost elsewhere."""
    said = [*_insured(book), *world_wrong.said(book), *_premiums(book), _advice(book)]
    said.append(
        "**Let its weight fall**: λ_s = 1/√s, the default (`lam = 1`, `lam_schedule = sqrt`). By "
        "the price law a rival then costs at most noise²·√T. If "
        f"your rewards are c times larger, divide λ by c.{_units(book)}"
    )
    said += _schedule_said(book)
    others = _other_problems(book)
    said += _by_agent(others)
    lacking = [] if any("neural" in r.agent for r, _ in others) else ["with networks"]
    if not any(r.testbed.startswith("logistic") for r, _ in others):
        lacking.append("in logistic bandits")
    if lacking:
        said.append(f"**Not run**: this schedule {enumeration(lacking)}.")
    return section("Recommendation", items(said))


def _by_agent(others: list[tuple[AgentResult, AgentResult]]) -> list[str]:
    """What the bonus adds to plain runs: one sentence per agent, with all its testbeds."""
    told: dict[str, list[str]] = {}
    for r, plain in others:
        own, mean = told.setdefault(r.agent, []), number(float(np.mean(plain.final_regret)))
        added, seeds = interval(difference(r, plain)), f"{len(r.seeds)} seeds)"
        first = f"On {r.testbed} it adds {added} to {mean} (`{r.agent}`, {seeds}"
        own.append(f"On {r.testbed}: {added} to {mean} ({seeds}" if own else first)
    return [". ".join(own) + "." for own in told.values()]


def _insurances(book: Book) -> tuple[Worst, Worst, Worst] | None:
    """Temperature 4, the default bonus, and the bonus with the lowest worst case."""
    worst = largest_regrets(world_frontier.points(book))
    named = {w.name: w for w in worst}
    bonuses = [w for w in worst if w.kind not in ("hotter", "plain")]
    if HEAT not in named or DEFAULT not in named:
        return None
    return named[HEAT], named[DEFAULT], bonuses[0]


def _insured(book: Book) -> list[str]:
    """Heat beside the default bonus, in worst case and average; then the boldest bonus."""
    found = _insurances(book)
    if found is None:
        return []
    hot, bonus, least = found
    words = {-1: "insures better than", 0: "is not shown to insure better or worse than"}
    verdict = words.get(_order(hot.regret, bonus.regret), "insures worse than")
    cost = {-1: "costs less", 0: "costs about as much"}.get(
        _order(hot.average, bonus.average), "costs more"
    )
    said = (
        f"**In these worlds {HEAT} without a bonus {verdict} {DEFAULT}**: at worst "
        f"{number(hot.regret.value)} against {number(bonus.regret.value)}. Averaged over the "
        f"priors it {cost}: {number(hot.average.value)} against {number(bonus.average.value)}."
    )
    if least.name != bonus.name and _order(least.regret, hot.regret) < 0:
        said += (
            f" {least.name} has {number(least.regret.value)} at worst, but "
            f"{number(least.average.value)} on average."
        )
    return [said]


def _order(a: Estimate, b: Estimate) -> int:
    """−1 or 1 where the intervals are apart."""
    return -1 if a.high < b.low else 1 if b.high < a.low else 0


def _units(book: Book) -> str:
    """What the default is where the noise is ½, and what nearly that weight gets there."""
    near = [
        p
        for p in world_frontier.points(book)
        if (p.testbed, p.kind) == ("superarm-80", "λ_s = c/√s") and 2.0 <= float(p.label) < 2.5
    ]
    if not near:
        return ""
    return (
        f" On superarm-80 noise is ½, and 1/√s becomes 2/√s: {near[0].name} has "
        f"{estimate(bootstrap(near[0].bad))}."
    )


#: Plain draws, what heat adds, draws with the bonus, what it adds.
Premium = tuple[AgentResult, StudentisedMean, AgentResult, StudentisedMean]


def _beside(book: Book) -> dict[str, Premium]:
    """By linear bandit, out of the box: what heat adds, and what the bonus adds."""
    found = {}
    crossed = [r for r in book.shelf.of("question-temperature") if r.settings["lam"] == 0]
    boxed = [r for r in book.shelf.of("question-default") if FALLING.items() <= r.settings.items()]
    for testbed in LINEAR:
        by_heat = {r.settings["temperature"]: r for r in crossed if r.testbed == testbed}
        plain, hot = by_heat.get(1.0), by_heat.get(HOT)
        bold = next((r for r in boxed if (r.testbed, r.agent) == (testbed, "fglmcts")), None)
        if plain is not None and hot is not None and bold is not None:
            found[testbed] = (plain, difference(hot, plain), bold, difference(bold, plain))
    return found


def _premiums(book: Book) -> list[str]:
    """What both insurances cost where the truth is drawn as the prior says."""
    return [
        f"On {testbed} {HEAT} adds {interval(hot)} to "
        f"{number(float(np.mean(plain.final_regret)))} ({len(plain.seeds)} seeds), {DEFAULT} "
        f"{interval(bonus)} ({len(bold.seeds)} seeds)."
        for testbed, (plain, hot, bold, bonus) in _beside(book).items()
    ]


def _advice(book: Book) -> str:
    """Which of both, where the numbers say it."""
    found, premiums = _insurances(book), _beside(book).values()
    safer = found is not None and _order(found[0].regret, found[1].regret) < 0
    cheaper = bool(premiums) and all(bonus.high < hot.low for _, hot, _, bonus in premiums)
    if safer and cheaper:
        return (
            "**So**: with few arms and a prior that may be far off, draw hotter: `temperature = "
            "4`. With many arms in new contexts, **switch the bonus on**: there it costs "
            "less, but no bad world with many arms was run. If you trust your prior, use neither."
        )
    return (
        "**Switch the bonus on** where the prior may be too sure of itself: a good arm would "
        "surprise you, or a sampler misses rare draws."
    )


def _other_problems(book: Book) -> list[tuple[AgentResult, AgentResult]]:
    """The schedule on problems that are no such worlds, beside no bonus, at temperature 1.

    Wheels have a page of their own.
    """
    studies = {study for k in book.shelf.kept for study in k.studies}
    runs = book.shelf.of(*(study for study in studies if not study.startswith("worlds-")))
    own = [
        r
        for r in runs
        if FALLING.items() <= r.settings.items() and r.settings.get("temperature", 1.0) == 1.0
    ]
    others = [r for r in own if not r.testbed.startswith(("linear-", "wheel-"))]
    pairs = [(r, book.shelf.plain(r)) for r in others]
    found = [
        (r, plain)
        for r, plain in pairs
        if plain is not None and len({*r.seeds} & {*plain.seeds}) >= FEWEST_SEEDS
    ]
    # Of several runs on a testbed, the one with the most seeds.
    most = {r.testbed: (r, plain) for r, plain in sorted(found, key=lambda f: len(f[0].seeds))}
    return [most[name] for name in sorted(most)]


def _schedule_said(book: Book) -> list[str]:
    """What the schedule adds at the paper's β = 1."""
    said = []
    constant = [r for r in book.shelf.of("question-lambda") if r.agent == "fglmcts"]
    for r in sorted(book.shelf.of("worlds-schedule"), key=lambda r: r.testbed):
        plain = [b for b in constant if (b.testbed, b.settings["lam"]) == (r.testbed, 0)]
        if r.settings["lam"] == FALLING["lam"] and plain:
            said.append(
                f"{interval(difference(r, plain[0]))} to "
                f"{number(float(np.mean(plain[0].final_regret)))} on {r.testbed} "
                f"({len(r.seeds)} seeds)"
            )
    return [f"With the paper's β = 1 it adds {enumeration(said)}."] if said else []
