"""One question, one page: what is asked, which pairs answer it, and which claims it judges.

A question is a module in `showdown/questions/` with a `QUESTION`. It is found there by its file;
nothing else has to be told of it.
"""

import dataclasses
import enum
import importlib
import pkgutil
from collections.abc import Callable, Sequence

from feelgood.stats.studentised import StudentisedMean
from showdown import yardsticks
from showdown.book import Book, grid, items, section
from showdown.effects import Effect, pooled, seeds_text
from showdown.families import Family, Judged, counts_table, pairs_table, stuck_sentences
from showdown.wording import count, percent

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

    def judge(self, book: Book, level: float) -> "ClaimVerdict":
        """By the interval of the relative change of regret, mean over the pairs."""
        effects = self.pairs(book)
        change = pooled(effects, level)
        if change is None:
            return ClaimVerdict(self, Verdict.OPEN, None, effects)
        low, high = change.low, change.high
        if self.says is Says.HIGHER:
            low, high = -high, -low
        verdict = Verdict.HOLDS if high < 0 else Verdict.NOT if low > -MARGIN else Verdict.OPEN
        if len({e.testbed for e in effects if e.tested}) < self.testbeds:
            verdict = Verdict.OPEN
        return ClaimVerdict(self, verdict, change, effects)


@dataclasses.dataclass(frozen=True)
class ClaimVerdict:
    """A claim with its verdict and the number that it rests on."""

    claim: Claim
    verdict: Verdict
    change: StudentisedMean | None
    effects: Sequence[Effect]

    @property
    def number(self) -> str:
        """The change of regret with its interval, or why there is none."""
        return "not enough seeds yet" if self.change is None else percent(self.change)

    @property
    def basis(self) -> str:
        """`6 pairs, 30 seeds`."""
        tested = [e for e in self.effects if e.tested]
        return f"{count(len(tested), 'pair')}, {seeds_text(tested)}" if tested else "–"


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
    #: The pairs that the page shows in full; all of them are in the file of pairs.
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


def claim_verdicts(book: Book) -> list[tuple[Question, ClaimVerdict]]:
    """Every claim of every question; intervals hold for all of them together at 95 %."""
    claims = [(q, claim) for q in all_questions() for claim in q.claims]
    level = 1.0 - 0.05 / max(len(claims), 1)
    return book.once("claims", lambda: [(q, claim.judge(book, level)) for q, claim in claims])


def page(book: Book, question: Question) -> str:
    """The page as Markdown."""
    families = list(question.families(book))
    parts = [f"# {question.title}", question.asks]
    if question.claims:
        rows = [
            [v.claim.said, v.claim.compared, v.number, v.basis, f"**{v.verdict.value}**"]
            for q, v in claim_verdicts(book)
            if q.name == question.name
        ]
        header = ("the paper says", "compared", "regret changes by", "from", "verdict")
        parts.append(grid(header, rows, numbers=2))
    parts.append(items(list(question.says(book, families))))
    if families:
        parts.append(section("Counts", COUNTS_ABOUT, counts_table(families)))
    shown = list(question.shown(families))
    if shown:
        pairs = pairs_table(book, shown)
        parts.append(section("Pairs", pairs, _notes(pairs)))
    parts += question.more(book)
    parts += _stuck(book, shown)
    parts += _yardsticks(book, families)
    parts.append(_foot(question, families))
    return "\n\n".join(filter(None, parts)) + "\n"


COUNTS_ABOUT = (
    "Bold: by Holm's rule. In brackets: by Benjamini and Hochberg's rule, then without any "
    "correction. The last column is the mean change over the pairs."
)


def _notes(table: str) -> str:
    parts = ["Regrets are means, with medians in brackets."]
    if "†" in table:
        parts.append("† does not beat the best fixed arm.")
    if "| stuck |" in table:
        parts.append("*Stuck* counts [stuck seeds](reading.md#stuck-seeds).")
    return " ".join(parts)


def _stuck(book: Book, shown: Sequence[Judged]) -> list[str]:
    """Stuck seeds of the pairs that are shown, with intervals."""
    told = stuck_sentences(book, shown)
    about = "Of the seeds above, with 95 % intervals of the share."
    return [section("Stuck seeds", about, items(told))] if told else []


def _yardsticks(book: Book, families: Sequence[Family]) -> list[str]:
    """What the regrets of these pairs are to be measured against."""
    runs = (e.changed for family in families for e in family.effects)
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
