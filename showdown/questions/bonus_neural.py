"""Does the feel-good bonus help networks?"""

from collections.abc import Sequence

from showdown.book import Book
from showdown.effects import FEWEST_SEEDS, Effect, distinct, effect
from showdown.families import Family, Judged, tally_sentence
from showdown.pairing import DATA, DATA_STUDIES, at, bonus_effects
from showdown.question import Claim, Question, Says
from showdown.wording import enumeration

SWEEP = ("question-lambda-neural",)
LARGEST = "λ = 0.5, b = 10"
LANGEVIN = ("neural-fglmcts", "neural-sfglmcts")


def langevin(book: Book) -> list[Effect]:
    """The Langevin agents of the paper's tables, with its own λ and b for the data set."""
    return distinct(at(bonus_effects(book, DATA_STUDIES), lambda r: r.agent in LANGEVIN))


def neural_ts(book: Book) -> list[Effect]:
    """NeuralTS with the bonus."""
    return at(bonus_effects(book, DATA_STUDIES), lambda r: r.agent not in LANGEVIN)


def rivals(book: Book) -> list[Effect]:
    """NeuralUCB and ε-greedy beside neural Langevin sampling, at the paper's settings."""
    out = []
    for r in book.shelf.of(*DATA_STUDIES):
        if r.agent in ("neural-ucb", "neural-eps-greedy"):
            base = [
                own
                for own in book.shelf.of(f"data-{r.testbed}")
                if own.agent == "neural-lmcts" and own.testbed_settings == r.testbed_settings
            ]
            out.append(effect("beside `neural-lmcts`", r, base[0] if base else None))
    return out


def families(book: Book) -> list[Family]:
    """The paper's weights, the sweep, and the rivals."""
    return [
        Family.of("Langevin agents, the paper's λ and b", langevin(book)),
        Family.of("NeuralTS, the paper's λ and b", neural_ts(book)),
        Family.of("Langevin agents, λ and b swept", bonus_effects(book, SWEEP)),
        Family.of("`neural-ucb`, `neural-eps-greedy` beside `neural-lmcts`", rivals(book)),
    ]


def shown(found: Sequence[Family]) -> list[Judged]:
    """The Langevin agents of the paper's tables, and the largest weight of the sweep."""
    tables = [m for m in found[0].members if m.effect.tested]
    sweep = [m for m in found[2].members if m.effect.tested and m.effect.label == LARGEST]
    return [*tables, *sweep]


def says(book: Book, found: Sequence[Family]) -> list[str]:
    """Counts, and what is not judged."""
    out = [
        tally_sentence("Langevin agents at the paper's weights", found[0]),
        tally_sentence("NeuralTS at the paper's weights", found[1]),
        tally_sentence("Weights from 0.01 to 0.5, caps 1 and 10", found[2]),
    ]
    judged = {m.effect.testbed for m in found[0].members if m.effect.tested}
    few = [name for name in DATA if name not in judged]
    if few:
        out.append(f"Fewer than {FEWEST_SEEDS} seeds so far, not judged: {enumeration(few)}.")
    return out


QUESTION = Question(
    name="bonus-neural",
    place=30,
    title="Does the feel-good bonus help networks?",
    asks=(
        "Data sets turned into bandits, with the paper's networks, features and settings; arms are "
        "classes or items. In the released code the Langevin agents had no bonus, and NeuralTS had "
        "it on the played arm alone. Here all have the bonus of the paper's definition, the "
        "largest value over all arms. Only pairs with at least 20 common seeds are judged."
    ),
    studies=(*SWEEP, "data-*"),
    claims=(
        Claim(
            "feel-good sampling tends to be weaker with networks",
            "abstract; section 4",
            Says.HIGHER,
            "Langevin agents with the paper's λ beside none",
            langevin,
            testbeds=3,
        ),
        Claim(
            "NeuralUCB and ε-greedy beat Langevin sampling with networks",
            "section 5",
            Says.LOWER,
            "`neural-ucb` and `neural-eps-greedy` beside `neural-lmcts`",
            rivals,
            testbeds=3,
        ),
    ),
    families=families,
    shown=shown,
    says=says,
)
