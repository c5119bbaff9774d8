"""Does smoothing the bonus matter?"""

from collections.abc import Iterable, Sequence

from feelgood.engine.results import AgentResult
from showdown.book import Book
from showdown.effects import Effect, effect
from showdown.families import Family, Judged, Word, tally_sentence
from showdown.pairing import in_order
from showdown.question import Claim, Question, Says
from showdown.shelf import settings_text, unsmoothed

STUDY = "question-smoothing"


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


def free(book: Book) -> list[Effect]:
    """In the paper's tables, where b = 1000 and both are the same function."""
    kept = (k.result for k in book.shelf.kept if any(s.startswith("table-") for s in k.studies))
    return [
        e
        for e in smoothed(book, (r for r in kept if r.settings.get("b", 0) >= 1000))
        if e.base is not None
    ]


def families(book: Book) -> list[Family]:
    """Both."""
    return [Family.of("the cap binds", binding(book)), Family.of("b = 1000", free(book))]


def shown(found: Sequence[Family]) -> list[Judged]:
    """Those with λ = 0.5, where the bonus has most to smooth."""
    chosen = [
        m
        for m in found[0].members
        if m.effect.changed is not None and m.effect.changed.settings["lam"] == 0.5
    ]
    return chosen or list(found[0].members)


def says(book: Book, found: Sequence[Family]) -> list[str]:
    """Counts, and how often both are the same to the last digit."""
    bound, same = found
    out = [tally_sentence("Where the cap binds, the smoothed bonus beside the plain one", bound)]
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
        "rounding. Each smoothed agent stands beside the plain one with the same λ and b."
    ),
    studies=(STUDY, "table-*"),
    claims=(
        Claim(
            "smoothing the bonus lessens its cost",
            "section 5",
            Says.LOWER,
            "smoothed beside plain where the cap binds",
            binding,
        ),
    ),
    families=families,
    shown=shown,
    says=says,
)
