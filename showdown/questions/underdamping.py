"""Does underdamping hurt when the kernel is right?"""

from collections.abc import Sequence

from showdown.book import Book
from showdown.effects import Effect, effect
from showdown.families import Family, tally_sentence
from showdown.pairing import in_order
from showdown.question import Claim, Question, Says
from showdown.shelf import settings_text

STUDY = "question-underdamping"


def underdamped(book: Book) -> list[Effect]:
    """Underdamped agents beside the overdamped one."""
    return [
        effect(settings_text(r, ("gamma",)), r, book.shelf.twin(r, "lmcts", ("step",)))
        for r in in_order(book.shelf.of(STUDY))
        if r.agent == "ulmcts"
    ]


def families(book: Book) -> list[Family]:
    """One."""
    return [Family.of("underdamped beside overdamped", underdamped(book))]


def says(book: Book, found: Sequence[Family]) -> list[str]:
    """The count."""
    return [tally_sentence("With a kernel that has the right law", found[0])]


QUESTION = Question(
    name="underdamping",
    place=70,
    title="Does underdamping hurt when the kernel is right?",
    asks=(
        "Underdamped Langevin dynamics carry a velocity with friction γ. The released kernel has "
        "other noise than its law needs. Here the kernel is right, with the same target and the "
        "same number of gradients as the overdamped agent, and sound steps for each."
    ),
    studies=(STUDY,),
    claims=(
        Claim(
            "underdamped Langevin loses to overdamped",
            "section 5",
            Says.HIGHER,
            "`ulmcts`, γ from 0.1 to 3, beside `lmcts`",
            underdamped,
        ),
    ),
    families=families,
    says=says,
)
