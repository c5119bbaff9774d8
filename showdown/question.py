"""One question, one page: what is asked, which pairs answer it, and which claims it judges.

A question is a module in `showdown/questions/` with a `QUESTION`. It is found there by its file;
nothing else has to be told of it.
"""

import dataclasses
import enum
import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence

from feelgood.stats.studentised import StudentisedMean
from showdown import yardsticks
from showdown.book import Book, grid, items, section
from showdown.changes import SEVERAL, of_each, pooled, without_each
from showdown.effects import Effect, seeds_text
from showdown.families import Family, Judged, Word, counts_table, stuck_sentences
from showdown.wording import count, enumeration, percent

#: A gain below this share of the regret is none that a claim could mean.
MARGIN = 0.05
NOT_RUN = "Not enough seeds yet: nothing can be said."


class Says(enum.Enum):
    """What a claim says of regret."""

    LOWER = "lower"
    HIGHER = "higher"


class Verdict(enum.Enum):
    """What became of a claim."""

    HOLDS = "holds"
    NOT = "does not hold"
    OPEN = "open"


@dataclasses.dataclass(frozen=True)
class Claim:
    """Something that the paper says, and the pairs that can judge it."""

    #: What it says, in a few words, and where: a section or table of the paper.
    said: str
    place: str
    says: Says
    #: What is compared with what, in a few words.
    compared: str
    pairs: Callable[[Book], Sequence[Effect]]
    #: On fewer testbeds than this the claim stays open.
    testbeds: int = 1
    #: Whether it stands on the front page; all claims stand on the pages of their questions.
    front: bool = False

    def judge(self, book: Book, level: float) -> "ClaimVerdict":
        """By the interval of the relative change of regret, and without each testbed in turn."""
        effects = self.pairs(book)
        change = pooled(effects, level)
        if change is None:
            return ClaimVerdict(self, Verdict.OPEN, None, effects)
        verdict, beds, alone = self.word(change), of_each(effects), []
        for testbed, others in without_each(effects).items():
            rest = pooled(others, level)
            if rest is None or self.word(rest) is not verdict:
                alone.append(testbed)
        single = {bed: pooled(own, level) for bed, own in beds.items() if 1 < len(beds) < SEVERAL}
        by_itself = {bed: one for bed, one in single.items() if one is not None}
        if alone or self.divides(by_itself) or len(beds) < self.testbeds:
            verdict = Verdict.OPEN
        return ClaimVerdict(self, verdict, change, effects, tuple(alone), by_itself)

    def word(self, change: StudentisedMean) -> Verdict:
        """Whether it *holds* is asked first: a small gain that is sure is a gain."""
        low, high = change.low, change.high
        if self.says is Says.HIGHER:
            low, high = -high, -low
        return Verdict.HOLDS if high < 0 else Verdict.NOT if low > -MARGIN else Verdict.OPEN

    def divides(self, by_itself: Mapping[str, StudentisedMean]) -> bool:
        """Whether it holds on one testbed and does not hold on another."""
        return {Verdict.HOLDS, Verdict.NOT} <= {self.word(own) for own in by_itself.values()}


@dataclasses.dataclass(frozen=True)
class ClaimVerdict:
    """A claim with its verdict and the number that it rests on."""

    claim: Claim
    verdict: Verdict
    change: StudentisedMean | None
    effects: Sequence[Effect]
    #: Testbeds without which the verdict would be another.
    alone: tuple[str, ...] = ()
    #: The change on each testbed by itself, where there are two.
    by_itself: Mapping[str, StudentisedMean] = dataclasses.field(default_factory=dict)

    @property
    def number(self) -> str:
        """The change of regret with its interval, or why there is none."""
        return "not enough seeds yet" if self.change is None else percent(self.change)

    @property
    def basis(self) -> str:
        """`6 pairs, linear-20, 30 seeds`, or `6 pairs, 5 testbeds, 20 to 100 seeds`."""
        tested = [e for e in self.effects if e.tested]
        if not tested:
            return "–"
        beds = list(of_each(tested))
        where = enumeration(beds) if len(beds) < SEVERAL else count(len(beds), "testbed")
        return ", ".join([count(len(tested), "pair"), where, seeds_text(tested)])

    @property
    def seen(self) -> str:
        """`linear-20, 30 seeds`: the same in short."""
        return self.basis.partition(", ")[2] or self.basis

    @property
    def hangs_on(self) -> str:
        """`, hangs on shuttle`, where leaving out one testbed changes the verdict."""
        if self.claim.divides(self.by_itself):
            return ", its testbeds disagree"
        return f", hangs on {enumeration(self.alone)}" if self.alone else ""


def _no_families(book: Book) -> Sequence[Family]:
    return ()


def _nothing(book: Book) -> Sequence[str]:
    return ()


@dataclasses.dataclass(frozen=True)
class Question:
    """A page. Parts that a question does not have are left out."""

    #: The page's file, without its ending; `place` orders the pages.
    name: str
    place: int
    title: str
    #: What is asked, and how: a paragraph by hand, without any result.
    asks: str
    studies: tuple[str, ...] = ()
    claims: tuple[Claim, ...] = ()
    families: Callable[[Book], Sequence[Family]] = _no_families
    #: The pairs whose stuck seeds the page counts; all pairs are in the file of pairs.
    shown: Callable[[Sequence[Family]], Sequence[Judged]] = lambda families: ()
    #: Sentences that say what came out.
    says: Callable[[Book, Sequence[Family]], Sequence[str]] = lambda book, families: ()
    #: Paragraphs after the tables: figures, further tables.
    more: Callable[[Book], Sequence[str]] = _nothing


def all_questions() -> list[Question]:
    """Those of all modules of `showdown.questions`, in the order of the pages."""
    import showdown.questions as folder

    found = []
    for module in pkgutil.iter_modules(folder.__path__):
        loaded = importlib.import_module(f"{folder.__name__}.{module.name}")
        if hasattr(loaded, "QUESTION"):
            found.append(loaded.QUESTION)
    return sorted(found, key=lambda q: (q.place, q.name))


def claims_level() -> float:
    """The level of each claim's interval, so that all of them hold together at 95 %."""
    return 1.0 - 0.05 / max(sum(len(q.claims) for q in all_questions()), 1)


def claim_verdicts(book: Book) -> list[tuple[Question, ClaimVerdict]]:
    """Every claim of every question; intervals hold for all of them together at 95 %."""
    level = claims_level()
    claims = [(q, claim) for q in all_questions() for claim in q.claims]
    return book.once("claims", lambda: [(q, claim.judge(book, level)) for q, claim in claims])


def page(book: Book, question: Question) -> str:
    """The page as Markdown."""
    families = list(question.families(book))
    parts = [f"# {question.title}", question.asks]
    if question.claims:
        parts += _claims(book, question)
    parts.append(items(list(question.says(book, families))))
    if any(family.members for family in families):
        parts.append(section("Counts", COUNTS_ABOUT, counts_table(families)))
    parts += question.more(book)
    parts += _stuck(book, question.shown(families))
    parts += _yardsticks(book, families)
    parts.append(_foot(question, families))
    return "\n\n".join(filter(None, parts)) + "\n"


COUNTS_ABOUT = (
    "Pairs with lower / higher regret: by Holm's rule and by Benjamini and Hochberg's (BH), both "
    "over the pairs of the row, and without correction (raw). The last column is the mean change."
)


def _claims(book: Book, question: Question) -> list[str]:
    """One row per claim: what is compared, the number, and how many pairs show it by themselves."""
    rows, own = [], [v for q, v in claim_verdicts(book) if q.name == question.name]
    for v in own:
        lower, higher = (Family.of("", v.effects).counts(w)[1] for w in (Word.HELPS, Word.HURTS))
        told = f"**{v.verdict.value}**{v.hangs_on}"
        rows.append([v.claim.said, v.claim.compared, v.number, f"{lower} / {higher}"])
        rows[-1] += [v.basis, told]
    header = ("the paper says", "compared", "regret changes by", "lower / higher (Holm in the row)")
    return [grid((*header, "from", "verdict"), rows, numbers=2), *_by_itself(own)]


def _by_itself(verdicts: Sequence[ClaimVerdict]) -> list[str]:
    """What two testbeds say one by one, because their verdict rests on both together."""
    two = [v for v in verdicts if v.by_itself]
    rows = [
        [v.claim.said, bed, percent(change), v.claim.word(change).value]
        for v in two
        for bed, change in v.by_itself.items()
    ]
    if not rows:
        return []
    about = "A verdict on two testbeds rests on both together. Each alone would say:"
    header = ("the paper says", "testbed", "regret changes by", "alone")
    return [about, grid(header, rows, numbers=2)]


def _stuck(book: Book, members: Sequence[Judged]) -> list[str]:
    """Stuck seeds of some pairs, with intervals."""
    told = stuck_sentences(book, members)
    about = "Of some runs, with 95 % intervals in per cent. The file of pairs has all."
    return [section("Stuck seeds", about, items(told))] if told else []


def _yardsticks(book: Book, families: Sequence[Family]) -> list[str]:
    """What the regrets of these pairs are to be measured against, if any pair is judged there."""
    effects = [e for family in families for e in family.effects]
    beds = {e.testbed for e in effects if e.tested}
    runs = (e.changed for e in effects if e.testbed in beds)
    return yardsticks.part(yardsticks.those_of((r for r in runs if r is not None), book.yardsticks))


def _foot(question: Question, families: Sequence[Family]) -> str:
    parts = []
    if families:
        file = f"{question.name}.csv"
        parts.append(f"All pairs: [`{file}`](../../results/pairs/{file}), [sortable](pairs.html).")
    if question.studies:
        told = ", ".join(f"`{name}`" for name in question.studies)
        parts.append(f"Studies: {told}.")
    parts.append("[How to read this](reading.md) · [all answers](README.md)")
    return " ".join(parts)
