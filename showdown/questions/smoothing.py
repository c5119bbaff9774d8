"""Does smoothing the bonus matter?"""

import dataclasses
from collections.abc import Iterable, Sequence

import numpy as np

from feelgood.engine.results import AgentResult
from showdown.book import Book
from showdown.effects import Effect, effect
from showdown.families import Family, Word, tally_sentence
from showdown.pairing import in_order
from showdown.question import Claim, Question, Says
from showdown.shelf import settings_text, unsmoothed

STUDY = "question-smoothing"
#: Rounds while the posterior is wide: a point of the curves, and a twentieth of a run.
EARLY = 509


def smoothed(book: Book, results: Iterable[AgentResult]) -> list[Effect]:
    """Those of the results that are smoothed beside the plain bonus at the same λ and b."""
    out = []
    for r in in_order(results):
        agent = unsmoothed(r.agent)
        if agent is not None:
            label = settings_text(r, ("lam", "b", "s"))
            out.append(effect(label, r, book.shelf.twin(r, agent)))
    return out


def binding(book: Book) -> list[Effect]:
    """Where the cap binds."""
    return smoothed(book, book.shelf.of(STUDY))


def early(book: Book) -> list[Effect]:
    """The same over the first rounds, while the posterior is wide."""
    return [
        effect(e.label, _cut(e.changed), _cut(e.base))
        for e in binding(book)
        if e.changed is not None and e.base is not None
    ]


def _cut(r: AgentResult) -> AgentResult:
    """Its regret until `EARLY`, or until the first point of the curve after it."""
    place = min(int(np.searchsorted(r.curve_rounds, EARLY)), len(r.curve_rounds) - 1)
    return dataclasses.replace(r, rounds=EARLY, final_regret=r.curve[:, place])


def free(book: Book) -> list[Effect]:
    """In the paper's tables, where b = 1000 and both are the same function."""
    kept = (k.result for k in book.shelf.kept if any(s.startswith("table-") for s in k.studies))
    return [
        e
        for e in smoothed(book, (r for r in kept if r.settings.get("b", 0) >= 1000))
        if e.base is not None
    ]


def families(book: Book) -> list[Family]:
    """Where the cap binds, over all rounds and over the first, and where it does not."""
    return [
        Family.of("the cap binds", binding(book)),
        Family.of(f"the cap binds, first {EARLY} rounds", early(book)),
        Family.of("b = 1000", free(book)),
    ]


def says(book: Book, found: Sequence[Family]) -> list[str]:
    """Counts, and how often both are the same to the last digit."""
    bound, first, same = found
    out = [
        tally_sentence("Where the cap binds, the smoothed bonus beside the plain one", bound),
        tally_sentence(f"The same over the first {EARLY} rounds", first),
    ]
    if same.tested:
        tested = [e for e in same.effects if e.tested]
        alike = sum(e.ties == len(e.seeds) for e in tested)
        differing = sum(same.counts(word)[1] for word in (Word.HELPS, Word.HURTS))
        out.append(
            f"In the paper's tables b is 1000: {alike} of {len(tested)} pairs have the same regret "
            f"on every seed, and {differing} differ by Holm's rule."
        )
    return out


QUESTION = Question(
    name="smoothing",
    place=40,
    title="Does smoothing the bonus matter?",
    asks=(
        "The smoothed bonus rounds off the kink at the cap b; s says how sharply. It can only "
        "matter where the cap binds. On linear-20 the best arm pays about 2.2, so that caps of "
        "0.5, 1 and 2 bind. At b = 1000 both bonuses are one function, and a difference is one of "
        "rounding. Each smoothed agent stands beside the plain one with the same λ and b. The "
        "paper says that smoothing helps only while the posterior is under-concentrated, as at "
        "short horizons; else `fgmalats` at λ = 0.01 is more robust. That agent was run at b = "
        "1000 alone. Here `fglmcts` is judged, over the first rounds and over all."
    ),
    studies=(STUDY, "table-*"),
    claims=(
        Claim(
            "smoothing the bonus helps while the posterior is under-concentrated",
            "section 5",
            Says.LOWER,
            f"smoothed beside plain where the cap binds, first {EARLY} rounds",
            early,
            front=True,
        ),
        Claim(
            "in well-concentrated regimes the plain bonus is more robust",
            "section 5",
            Says.HIGHER,
            "smoothed beside plain where the cap binds, all rounds",
            binding,
        ),
    ),
    families=families,
    says=says,
)
