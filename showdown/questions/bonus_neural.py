"""Does the feel-good bonus help networks?"""

from collections.abc import Sequence

from showdown.book import Book
from showdown.effects import FEWEST_SEEDS, Effect, distinct, effect
from showdown.families import Family, Judged, tally_sentence
from showdown.pairing import DATA, DATA_STUDIES, at, bonus_effects, in_order
from showdown.question import Claim, Question, Says
from showdown.shelf import settings_text, unsmoothed
from showdown.wording import enumeration

SWEEP = ("question-lambda-neural",)
FALLING = ("question-falling-neural",)
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
        Family.of("Langevin agents, λ and b swept", bonus_effects(book, SWEEP)),
        Family.of("`neural-ucb`, `neural-eps-greedy` beside `neural-lmcts`", rivals(book)),
        Family.of("Langevin agents, λ_s = 1/√s", bonus_effects(book, FALLING)),
        Family.of("λ_s = 1/√s beside the paper's λ", beside_constant(book)),
    ]


def shown(found: Sequence[Family]) -> list[Judged]:
    """Without smoothing: the paper's tables, the largest weight of the sweep, one that falls."""
    own = [m for i in (0, 2, 4) for m in found[i].members if m.effect.tested]
    plain = [m for m in own if unsmoothed(m.effect.agent) is None]
    return [m for m in plain if m.family != found[2].name or m.effect.label == LARGEST]


def says(book: Book, found: Sequence[Family]) -> list[str]:
    """Counts, and what is not judged."""
    out = [
        tally_sentence("Langevin agents at the paper's weights", found[0]),
        tally_sentence("NeuralTS at the paper's weights", found[1]),
        tally_sentence("Weights from 0.01 to 0.5, caps 1 and 10", found[2]),
        tally_sentence("A weight that falls as 1/√s, beside none", found[4]),
    ]
    if found[5].tested:
        out.append(tally_sentence("The same beside the paper's constant weight", found[5]))
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
    studies=(*SWEEP, *FALLING, "data-*"),
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
