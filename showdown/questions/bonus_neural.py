"""Does the feel-good bonus help networks?"""

from collections.abc import Sequence

from feelgood.engine.results import AgentResult
from showdown.book import Book, grid, section
from showdown.changes import pooled
from showdown.effects import FEWEST_SEEDS, Effect, distinct, effect, regret_text, seeds_text
from showdown.families import Family, Judged, Word
from showdown.pairing import DATA, DATA_STUDIES, at, bonus_effects, in_order, without_twins
from showdown.question import Claim, Question, Says
from showdown.shelf import settings_text, unsmoothed
from showdown.wording import count, enumeration, percent
from showdown.yardsticks import dagger

SWEEP = ("question-lambda-neural",)
FALLING = ("question-falling-neural",)
LARGEST = "λ = 0.5, b = 10"
LANGEVIN = ("neural-fglmcts", "neural-sfglmcts")
RIVALS = ("neural-eps-greedy", "neural-ucb")
#: Whose regrets the page shows.
SHOWN = ("neural-lmcts", LANGEVIN[0], *RIVALS)
#: Families of a bonus beside none.
BESIDE_NONE = (0, 1, 2, 5)


def langevin(book: Book) -> list[Effect]:
    """The Langevin agents of the paper's tables, with its own λ and b for the data set."""
    return without_twins(at(bonus_effects(book, DATA_STUDIES), lambda r: r.agent in LANGEVIN))


def neural_ts(book: Book) -> list[Effect]:
    """NeuralTS with the bonus."""
    return without_twins(at(bonus_effects(book, DATA_STUDIES), lambda r: r.agent not in LANGEVIN))


def swept(book: Book) -> list[Effect]:
    """Weights and caps of the sweep."""
    return without_twins(bonus_effects(book, SWEEP))


def rivals(book: Book, agents: Sequence[str], beside: str) -> list[Effect]:
    """Agents beside another one of the same data set, all at the paper's settings."""
    out = []
    for r in in_order(book.shelf.of(*DATA_STUDIES)):
        if r.agent in agents:
            base = [
                own
                for own in book.shelf.of(f"data-{r.testbed}")
                if own.agent == beside and own.testbed_settings == r.testbed_settings
            ]
            out.append(effect(f"beside `{beside}`", r, base[0] if base else None))
    return out


def greedy(book: Book) -> list[Effect]:
    """ε-greedy beside feel-good sampling."""
    return rivals(book, RIVALS[:1], LANGEVIN[0])


def beside_constant(book: Book) -> list[Effect]:
    """A weight that falls beside the constant one of the paper."""
    out = []
    for r in in_order(book.shelf.of(*FALLING)):
        if r.settings.get("lam", 0) > 0:
            tables = [t for t in book.shelf.of(f"data-{r.testbed}") if t.agent == r.agent]
            base = [t for t in tables if t.settings["lam_schedule"] == "constant"]
            label = f"{settings_text(r, ('lam',))} beside the paper's λ"
            out.append(effect(label, r, base[0] if base else None))
    return out


def families(book: Book) -> list[Family]:
    """The paper's weights, the sweep, the rivals, and a weight that falls."""
    return [
        Family.of("Langevin agents, the paper's λ and b", langevin(book)),
        Family.of("NeuralTS, the paper's λ and b", neural_ts(book)),
        Family.of("Langevin agents, λ and b swept", swept(book)),
        Family.of(
            "`neural-ucb`, `neural-eps-greedy` beside `neural-lmcts`",
            rivals(book, RIVALS, "neural-lmcts"),
        ),
        Family.of("`neural-eps-greedy` beside `neural-fglmcts`", greedy(book)),
        Family.of("Langevin agents, λ_s = 1/√s", bonus_effects(book, FALLING)),
        Family.of("λ_s = 1/√s beside the paper's λ", beside_constant(book)),
    ]


def shown(found: Sequence[Family]) -> list[Judged]:
    """Without smoothing: the paper's tables, rivals, the largest weight, and one that falls."""
    own = [m for i in (0, 2, 3, 5) for m in found[i].members if m.effect.tested]
    plain = [m for m in own if unsmoothed(m.effect.agent) is None]
    return [m for m in plain if m.family != found[2].name or m.effect.label == LARGEST]


def says(book: Book, found: Sequence[Family]) -> list[str]:
    """All pairs with a bonus beside none, and what is not judged."""
    out = [_beside_none([m for i in BESIDE_NONE for m in found[i].members if m.effect.tested])]
    judged = {m.effect.testbed for m in found[0].members if m.effect.tested}
    alone = {e.testbed for e in found[0].effects if e.changed is not None and e.base is None}
    few = [name for name in DATA if name not in judged | alone]
    if few:
        out.append(f"Fewer than {FEWEST_SEEDS} seeds so far, not judged: {enumeration(few)}.")
    if alone - judged:
        out.append(
            "No run without the bonus at the same temperature, not judged: "
            f"{enumeration(sorted(alone - judged))}."
        )
    return out


def _beside_none(members: Sequence[Judged]) -> str:
    """Each pair once, though it may stand in two families: the paper's weight is in the sweep."""
    once = distinct([m.effect for m in members])
    words = [m.word() for m in members if any(m.effect is e for e in once)]
    if not words:
        return "The bonus beside none: not enough seeds yet."
    return (
        f"The bonus beside none: of {count(len(once), 'pair')} regret is lower in "
        f"{words.count(Word.HELPS)} and higher in {words.count(Word.HURTS)} ({seeds_text(once)}, "
        "Holm's rule in each row below)."
    )


def by_data_set(book: Book) -> list[str]:
    """Regrets of the agents on each data set, and what it says of the open claim."""
    change = greedy(book)
    beds = [n for n in DATA if any(e.testbed == n and e.tested for e in change)]
    rows = []
    for bed in beds:
        own = {r.agent: r for r in book.shelf.of(f"data-{bed}") if r.agent in SHOWN}
        cells = [_regret(book, own.get(agent)) for agent in SHOWN]
        told = pooled(e for e in change if e.testbed == bed)
        rows.append([bed, *cells, percent(told) if told else "–"])
    about = (
        "The paper's text has ε-greedy as the best on mushroom and NeuralUCB on adult. Here are "
        "mean regrets (medians) at the paper's settings. † does not beat the best fixed arm."
    )
    beside = f"`{RIVALS[0]}` beside `{LANGEVIN[0]}`"
    header = ("data set", *(f"`{agent}`" for agent in SHOWN), beside)
    return [section("Data sets", about, grid(header, rows))] if rows else []


def _regret(book: Book, r: AgentResult | None) -> str:
    return "–" if r is None else regret_text(r, dagger(r, book.yardsticks))


QUESTION = Question(
    name="bonus-neural",
    place=30,
    title="Does the feel-good bonus help networks?",
    asks=(
        "Data sets turned into bandits, with the paper's networks, features and settings; arms are "
        "classes or items. In the released code the Langevin agents had no bonus, and NeuralTS had "
        "it on the played arm alone. Here all have the bonus of the paper's definition, the "
        "largest value over all arms."
    ),
    studies=(*SWEEP, *FALLING, "data-*"),
    claims=(
        Claim(
            "feel-good sampling tends to be weaker with networks",
            "abstract; section 4",
            Says.HIGHER,
            "Langevin agents with the paper's λ beside none",
            langevin,
            testbeds=3,
            front=True,
        ),
        Claim(
            "ε-greedy outperforms the optimism of feel-good sampling with networks",
            "section 5",
            Says.LOWER,
            "`neural-eps-greedy` beside `neural-fglmcts`, the paper's settings",
            greedy,
            testbeds=3,
        ),
    ),
    families=families,
    shown=shown,
    says=says,
    more=by_data_set,
)
