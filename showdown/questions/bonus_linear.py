"""Does the feel-good bonus help in linear bandits?"""

from collections.abc import Sequence

from showdown.book import Book, section
from showdown.effects import Effect
from showdown.families import Family, tally_sentence
from showdown.figures import over_weights
from showdown.pairing import at, bonus_effects, grid_effects
from showdown.question import Claim, Question, Says

SOUND = ("question-lambda",)
PAPER = ("linear-20-b1000", "linear-40-b1000")


def families(book: Book) -> list[Family]:
    """The sweep with sound steps, the paper's grid, and the cap."""
    return [
        Family.of("sound steps", bonus_effects(book, SOUND)),
        Family.of("the paper's settings, its β = 10³", grid_effects(book, PAPER)),
        Family.of("sound steps, cap b swept", bonus_effects(book, ["question-cap"])),
    ]


def small(book: Book) -> list[Effect]:
    """λ = 0.01 at the paper's settings."""
    return at(grid_effects(book, PAPER), lambda r: r.settings["lam"] == 0.01)


def large(book: Book) -> list[Effect]:
    """λ of 0.1 and more with samplers that follow the posterior."""
    return at(bonus_effects(book, SOUND), lambda r: r.settings["lam"] >= 0.1)


def says(book: Book, found: Sequence[Family]) -> list[str]:
    """The count of each family."""
    subjects = ("With sound steps", "At the paper's settings", "With a cap b from 0.5 to 1000")
    return [tally_sentence(s, f) for s, f in zip(subjects, found, strict=True)]


def more(book: Book) -> list[str]:
    """The sweep as a picture."""
    drawn = [r for r in book.shelf.of(*SOUND) if r.agent == "fglmcts"]
    if not drawn:
        return []
    caption = (
        "Mean final regret of `fglmcts` over the weight λ, with 95 % intervals. Flat: no bonus. "
        "Dashed: the most that one [rival](worlds.md#what-a-constant-weight-costs) would cost, "
        "λT/4."
    )
    return [section("Figure", book.figure("lambda-linear", caption, lambda: over_weights(drawn)))]


QUESTION = Question(
    name="bonus-linear",
    place=10,
    title="Does the feel-good bonus help in linear bandits?",
    asks=(
        "The bonus adds λ times the best arm's reward, capped at b, to the log-posterior of every "
        "past round. Each agent stands beside its twin without it. *Sound* steps follow the "
        "curvature of the target, so that draws have nearly its law. The linear testbeds have 5 "
        "arms and 20 or 40 parameters, drawn as the prior is. On such worlds Thompson sampling is "
        "near the best already; [worlds](worlds.md) has others."
    ),
    studies=(*SOUND, *(f"table-lambda-{name}" for name in PAPER), "question-cap"),
    claims=(
        Claim(
            "a small bonus (λ = 0.01) beats none in linear bandits",
            "appendix, λ tables",
            Says.LOWER,
            "λ = 0.01 beside 0, the paper's settings",
            small,
            front=True,
        ),
        Claim(
            "larger bonuses help when posterior samples are accurate",
            "abstract",
            Says.LOWER,
            "λ ≥ 0.1 beside 0, sound steps",
            large,
            front=True,
        ),
    ),
    families=families,
    says=says,
    more=more,
)
