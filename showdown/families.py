"""Effects that answer one question together: verdicts and counts, corrected for their number."""

import dataclasses
import enum
from collections.abc import Sequence

import numpy as np

from feelgood.core.numbers import p_text
from feelgood.stats.false_discovery import benjamini_hochberg
from feelgood.stats.holm import holm
from showdown import yardsticks
from showdown.book import Book, grid
from showdown.effects import Effect, distinct, mean_and_median, pooled, seeds_text
from showdown.shelf import settings_text
from showdown.wording import count, interval, number, percent, testbeds_text

ALPHA = 0.05


class Word(enum.Enum):
    """What a test says."""

    HELPS = "helps"
    HURTS = "hurts"
    NOTHING = "no difference shown"
    UNKNOWN = "not enough yet"


@dataclasses.dataclass(frozen=True)
class Judged:
    """An effect with the p of its test: raw, by Holm's rule and by Benjamini and Hochberg's."""

    effect: Effect
    family: str
    raw: float
    holm: float
    discovery: float

    def word(self, p: float | None = None) -> Word:
        """By Holm's rule, or by another p of the same test."""
        if not self.effect.tested or self.effect.difference is None:
            return Word.UNKNOWN
        if (self.holm if p is None else p) > ALPHA:
            return Word.NOTHING
        return Word.HELPS if self.effect.difference.value < 0 else Word.HURTS


@dataclasses.dataclass(frozen=True)
class Family:
    """Effects that are counted together; each pair is in it once."""

    name: str
    members: tuple[Judged, ...]

    @classmethod
    def of(cls, name: str, effects: Sequence[Effect]) -> "Family":
        """Judge them together: effects that cannot be tested do not count as tests."""
        own = distinct(effects)
        raw = np.array(
            [e.difference.p if e.tested and e.difference else np.nan for e in own], np.float64
        )
        there = np.isfinite(raw)
        strict, lenient = (np.full(len(own), np.nan) for _ in range(2))
        strict[there], lenient[there] = holm(raw[there]), benjamini_hochberg(raw[there])
        judged = (
            Judged(e, name, *map(float, ps))
            for e, *ps in zip(own, raw, strict, lenient, strict=True)
        )
        return cls(name, tuple(judged))

    def counts(self, word: Word) -> tuple[int, int, int]:
        """How many have this word: raw, by Holm's rule, by Benjamini and Hochberg's."""
        tested = [m for m in self.members if m.effect.tested]
        return (
            sum(m.word(m.raw) is word for m in tested),
            sum(m.word(m.holm) is word for m in tested),
            sum(m.word(m.discovery) is word for m in tested),
        )

    @property
    def tested(self) -> int:
        """How many could be judged."""
        return sum(m.effect.tested for m in self.members)

    @property
    def effects(self) -> list[Effect]:
        """The pairs."""
        return [m.effect for m in self.members]


def counts_table(families: Sequence[Family]) -> str:
    """How often something helps and hurts, family by family; those without a pair have no row."""
    rows = []
    for family in (f for f in families if f.members):
        change = pooled(family.effects)
        rows.append(
            [
                family.name,
                str(family.tested),
                _three(family.counts(Word.HELPS)),
                _three(family.counts(Word.HURTS)),
                str(len(family.members) - family.tested),
                percent(change) if change else "–",
            ]
        )
    header = ("family", "pairs", "helps", "hurts", "not enough yet", "regret changes by")
    return grid(header, rows)


def _three(counts: tuple[int, int, int]) -> str:
    raw, strict, lenient = counts
    return f"**{strict}** ({lenient}, {raw})"


def tally_sentence(subject: str, family: Family) -> str:
    """`Subject: of 12 pairs on …, helps in 1 and hurts in 8 by Holm's rule (30 seeds).`"""
    if not family.tested:
        return f"{subject}: not enough seeds yet."
    helps, hurts = (family.counts(word)[1] for word in (Word.HELPS, Word.HURTS))
    where = testbeds_text(list(dict.fromkeys(e.testbed for e in family.effects if e.tested)))
    return (
        f"{subject}: of {count(family.tested, 'pair')} on {where} it helps in {helps} and hurts "
        f"in {hurts} ({seeds_text(family.effects)})."
    )


def pairs_table(book: Book, members: Sequence[Judged]) -> str:
    """A few pairs in full: means with medians in brackets, stuck seeds, difference and verdict."""
    stuck = [(_stuck(book, m.effect, True), _stuck(book, m.effect, False)) for m in members]
    told = any(own not in ("0", "–") for pair in stuck for own in pair)
    rows = []
    whats = _telling([m.effect.label for m in members])
    for m, what, (with_it, without) in zip(members, whats, stuck, strict=True):
        e = m.effect
        row = [
            e.testbed,
            f"`{e.agent}`",
            what,
            *(_regret(book, e, own) for own in (False, True)),
        ]
        if told:
            row.append(f"{without} → {with_it}")
        row += [interval(e.difference) if e.difference else "–", _p(m.holm), m.word().value]
        rows.append(row)
    header = ["testbed", "agent", "what", "regret without", "with"]
    header += ["stuck"] if told else []
    return grid((*header, "difference", "p (Holm)", "verdict"), rows, numbers=3)


def _telling(labels: Sequence[str]) -> list[str]:
    """Labels such as `λ = 0.1, b = 1` without the parts that all of them have."""
    parts = [label.split(", ") for label in labels]
    common = set.intersection(*map(set, parts)) if len(labels) > 1 else set()
    kept = [", ".join(p for p in own if p not in common) for own in parts]
    return [short or label for short, label in zip(kept, labels, strict=True)]


def _regret(book: Book, e: Effect, with_it: bool) -> str:
    """`89.2 (87.0)`, with a dagger where the mean does not beat the best fixed arm."""
    values, run = (e.with_it, e.changed) if with_it else (e.without, e.base)
    mean, median = mean_and_median(values)
    own = book.yardsticks.get(yardsticks.key_of(run)) if run else None
    mark = "†" if own is not None and mean >= own.fixed else ""
    return f"{number(mean)}{mark} ({number(median)})"


def _stuck(book: Book, e: Effect, with_it: bool) -> str:
    run = e.changed if with_it else e.base
    share = None if run is None else yardsticks.stuck(run, book.yardsticks)
    return "–" if share is None else str(round(share.value * share.count))


def _p(value: float) -> str:
    return p_text(value) if np.isfinite(value) else "–"


def stuck_sentences(book: Book, members: Sequence[Judged]) -> list[str]:
    """Shares of stuck seeds with their intervals, where there are any."""
    out: dict[str, str] = {}
    for m in members:
        for run in (m.effect.base, m.effect.changed):
            share = None if run is None else yardsticks.stuck(run, book.yardsticks)
            if run is None or share is None or share.value == 0:
                continue
            lam = settings_text(run, ("lam",)) if run.settings.get("lam") else ""
            name = f"`{run.agent}`" + (f", {lam}," if lam else "")
            ends = f"{100 * share.low:.0f} to {100 * share.high:.0f} %"
            stuck_seeds = round(share.value * share.count)
            out[f"{name} on {run.testbed}"] = f"{stuck_seeds} of {share.count} ({ends})"
    return [f"{name}: {told}" for name, told in out.items()]
