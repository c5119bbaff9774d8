"""Does the feel-good bonus help on wheels?"""

from collections.abc import Sequence

from showdown.book import Book
from showdown.effects import Effect
from showdown.families import Family, Judged, tally_sentence
from showdown.pairing import at, bonus_effects
from showdown.question import Question

STUDIES = ("question-default", "table-wheel", "worlds-wheel")


def wheel(book: Book, study: str) -> list[Effect]:
    """The pairs of one study on wheels."""
    return at(bonus_effects(book, [study]), lambda r: r.testbed.startswith("wheel"))


def families(book: Book) -> list[Family]:
    """Out of the box, at the paper's settings, and in the units of the wheel's rewards."""
    return [
        Family.of("out of the box", wheel(book, STUDIES[0])),
        Family.of("the paper's settings", wheel(book, STUDIES[1])),
        Family.of("preset `beta-1`", wheel(book, STUDIES[2])),
    ]


def shown(found: Sequence[Family]) -> list[Judged]:
    """`fglmcts` of the first and of the last."""
    own = (*found[0].members, *found[2].members)
    return [m for m in own if m.effect.agent == "fglmcts"]


def says(book: Book, found: Sequence[Family]) -> list[str]:
    """Counts."""
    return [
        tally_sentence("Out of the box, weight 1/√s", found[0]),
        tally_sentence("The paper's settings, with a weight of 0.01", found[1]),
        tally_sentence("Preset `beta-1`, weights from 0.0002 to 0.1, falling ones too", found[2]),
    ]


QUESTION = Question(
    name="bonus-wheel",
    place=35,
    title="Does the feel-good bonus help on wheels?",
    asks=(
        "A wheel has a safe arm everywhere and one rich arm per quadrant outside the radius δ. "
        "Rewards reach 50, so that λ weighs fifty times as much as where rewards are near 1. "
        "So λ = 0.002 is here what 0.1 is there, and 0.02/√s is what 1/√s is there. The "
        "published wheel numbers are the regret of one fixed arm in another world; see "
        "[agreement](agreement.md)."
    ),
    studies=STUDIES,
    families=families,
    shown=shown,
    says=says,
)
