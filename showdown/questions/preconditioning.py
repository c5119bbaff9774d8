"""Does preconditioning help at equal temperature?"""

from collections.abc import Sequence

from showdown.book import Book
from showdown.effects import Effect, effect
from showdown.families import Family, tally_sentence
from showdown.pairing import in_order, steps_text
from showdown.question import Claim, Question, Says
from showdown.shelf import is_sound, unpreconditioned

STUDIES = ("question-preconditioning", "question-preconditioning-paper")


def preconditioned(book: Book) -> list[Effect]:
    """Preconditioned agents beside themselves without, at equal temperature."""
    effects = []
    for r in in_order(book.shelf.of(*STUDIES)):
        agent = unpreconditioned(r.agent)
        if agent is not None:
            effects.append(effect(steps_text(r), r, book.shelf.twin(r, agent)))
    return effects


def hmc(book: Book) -> list[Effect]:
    """HMC at the paper's settings, with and without preconditioner."""
    runs = book.shelf.of("table-main")
    out = []
    for r in runs:
        if r.agent == "phmcts" and not is_sound(r):
            twins = [t for t in runs if t.agent == "hmcts" and t.testbed == r.testbed]
            out.append(effect("fixed step 0.1, as published", r, twins[0] if twins else None))
    return out


def families(book: Book) -> list[Family]:
    """Equal temperature, and HMC as the paper has it."""
    return [
        Family.of("equal temperature", preconditioned(book)),
        Family.of("HMC at the paper's settings", hmc(book)),
    ]


def says(book: Book, found: Sequence[Family]) -> list[str]:
    """Counts."""
    return [
        tally_sentence("At equal temperature", found[0]),
        tally_sentence("HMC with the paper's fixed step, which freezes without one", found[1]),
    ]


QUESTION = Question(
    name="preconditioning",
    place=50,
    title="Does preconditioning help at equal temperature?",
    asks=(
        "A preconditioned sampler takes its steps in the metric of the design matrix V. The "
        "published pairs differ in temperature by a factor of ten, which hides what the "
        "preconditioner does. Here each agent stands beside its twin without it at the same β, "
        "step and number of gradients. HMC also stands as the paper has it: its fixed step is too "
        "long for the plain chain, which stops accepting after some 600 rounds."
    ),
    studies=(*STUDIES, "table-main"),
    claims=(
        Claim(
            "preconditioning distorts the posterior and raises regret",
            "section 4; section 5",
            Says.HIGHER,
            "with beside without, at equal temperature",
            preconditioned,
            front=True,
        ),
        Claim(
            "a preconditioner cuts the regret of HMC (240 to 90)",
            "section 5",
            Says.LOWER,
            "`phmcts` beside `hmcts`, the paper's fixed step",
            hmc,
        ),
    ),
    families=families,
    says=says,
)
