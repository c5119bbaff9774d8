"""Effects that answer one question together: verdicts and counts, corrected for their number."""

import dataclasses
import enum
from collections.abc import Sequence

import numpy as np

from feelgood.engine.results import AgentResult
from feelgood.stats.false_discovery import benjamini_hochberg
from feelgood.stats.holm import holm
from showdown import yardsticks
from showdown.book import Book, grid
from showdown.changes import pooled
from showdown.effects import Effect, distinct, seeds_text
from showdown.shelf import settings_text
from showdown.wording import count, percent, testbeds_text

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
    """How often regret is lower or higher, family by family; those without a pair have no row."""
    rows = []
    for family in (f for f in families if f.members):
        change = pooled(family.effects)
        raw, strict, lenient = zip(
            family.counts(Word.HELPS), family.counts(Word.HURTS), strict=True
        )
        rows.append(
            [
                family.name,
                str(family.tested),
                *(f"{lower} / {higher}" for lower, higher in (strict, lenient, raw)),
                str(len(family.members) - family.tested),
                percent(change) if change else "–",
            ]
        )
    header = ("family", "pairs", "Holm", "BH", "raw", "not enough yet", "regret changes by")
    return grid(header, rows)


def tally_sentence(subject: str, family: Family) -> str:
    """`Subject: of 12 pairs on … regret is lower in 1 and higher in 8 (Holm, 30 seeds).`

    Where no pair shows anything and all of them together do, that is said, too.
    """
    if not family.tested:
        return f"{subject}: not enough seeds yet."
    lower, higher = (family.counts(word)[1] for word in (Word.HELPS, Word.HURTS))
    where = testbeds_text(list(dict.fromkeys(e.testbed for e in family.effects if e.tested)))
    told = (
        f"{subject}: of {count(family.tested, 'pair')} on {where} regret is lower in {lower} and "
        f"higher in {higher} (Holm, {seeds_text(family.effects)})."
    )
    change = pooled(family.effects)
    if lower or higher or change is None or change.low <= 0 <= change.high:
        return told
    return f"{told} All together they change regret by {percent(change)}, 95 % interval."


def stuck_sentences(book: Book, members: Sequence[Judged]) -> list[str]:
    """Shares of stuck seeds with their intervals, run by run, where there are any.

    Runs that share agent, bonus and testbed are told apart by their families.
    """
    runs: dict[int, tuple[AgentResult, str]] = {}
    for m in members:
        for run in (m.effect.base, m.effect.changed):
            if run is not None:
                runs.setdefault(id(run), (run, m.family))
    names = [_name(run) for run, _ in runs.values()]
    out = []
    for (run, family), name in zip(runs.values(), names, strict=True):
        share = yardsticks.stuck(run, book.yardsticks)
        if share is None or share.value == 0:
            continue
        ends = f"{100 * share.low:.0f}, {100 * share.high:.0f}"
        others = [own for own, other in zip(runs.values(), names, strict=True) if other == name]
        apart = f" ({_apart(run, family, others)})" if len(others) > 1 else ""
        out.append(f"{name}{apart}: {round(share.value * share.count)} of {share.count} [{ends}]")
    return out


def _apart(run: AgentResult, family: str, others: Sequence[tuple[AgentResult, str]]) -> str:
    """What tells a run from others of the same name: its family, or the settings that differ."""
    if sum(own == family for _, own in others) == 1:
        return family
    shared = set.intersection(*(set(own.settings) for own, _ in others))
    told = sorted(n for n in shared if any(own.settings[n] != run.settings[n] for own, _ in others))
    return ", ".join(f"{name} = {run.settings[name]}" for name in told) or family


def _name(run: AgentResult) -> str:
    """`fglmcts`, λ = 0.1, bonus on the score, on logistic-20."""
    parts = [f"`{run.agent}`"]
    if run.settings.get("lam"):
        parts.append(settings_text(run, ("lam",)))
        if run.settings.get("bonus_on") == "score":
            parts.append("bonus on the score")
    return f"{', '.join(parts)}{',' if len(parts) > 1 else ''} on {run.testbed}"
