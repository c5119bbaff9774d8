"""Stuck seeds of one run beside those of another: shares, and an exact test of what differs."""

import dataclasses
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from feelgood.engine.results import AgentResult
from feelgood.stats.holm import holm
from feelgood.stats.intervals import Estimate
from feelgood.stats.shares import stuck_share
from showdown import yardsticks
from showdown.book import Book
from showdown.effects import FEWEST_SEEDS
from showdown.families import ALPHA

#: From which regret over the last rounds on a seed of this run is stuck; None: not known.
Bar = Callable[[AgentResult], float | None]


def bar_of(book: Book) -> Bar:
    """Halfway from a told learner to chance, by the yardsticks: the one definition of all pages."""

    def bar(run: AgentResult) -> float | None:
        own = book.yardsticks.get(yardsticks.key_of(run))
        return None if own is None else own.stuck_from

    return bar


def share_of(run: AgentResult, bar: Bar) -> Estimate | None:
    """The share of stuck seeds with its interval."""
    limit = bar(run)
    return None if limit is None else stuck_share(run.simple_regret, limit)


def share_text(share: Estimate | None) -> str:
    """`17 % [11, 26]`, from shares."""
    if share is None:
        return "–"
    return f"{100 * share.value:.0f} % [{100 * share.low:.0f}, {100 * share.high:.0f}]"


@dataclasses.dataclass(frozen=True)
class Beside:
    """A run beside another, seed by seed: who is stuck in one of them only.

    Under the hypothesis that the change does nothing, either is as likely to be the one. So the
    number of those that are freed is binomial (McNemar, "Note on the sampling error of the
    difference between correlated proportions", Psychometrika 1947; here the exact form).
    """

    label: str
    changed: AgentResult
    base: AgentResult
    freed: int
    bound: int
    seeds: int
    #: How many are stuck in `base`.
    before: int
    p: float
    holm: float = 1.0

    @property
    def after(self) -> int:
        """How many are stuck in `changed`."""
        return self.before - self.freed + self.bound

    @property
    def judged(self) -> bool:
        """Whether there are enough seeds."""
        return self.seeds >= FEWEST_SEEDS

    @property
    def frees(self) -> bool:
        """By Holm's rule."""
        return self.judged and self.holm <= ALPHA and self.freed > self.bound

    @property
    def binds(self) -> bool:
        """By Holm's rule."""
        return self.judged and self.holm <= ALPHA and self.bound > self.freed


def _stuck(run: AgentResult, limit: float) -> dict[int, bool]:
    return dict(zip(run.seeds, map(bool, ~(run.simple_regret < limit)), strict=True))


def beside(
    label: str, changed: AgentResult | None, base: AgentResult | None, bar: Bar
) -> list[Beside]:
    """One comparison, or none where a run or its bar is missing."""
    if changed is None or base is None:
        return []
    limits = bar(changed), bar(base)
    if limits[0] is None or limits[1] is None:
        return []
    one, other = _stuck(changed, limits[0]), _stuck(base, limits[1])
    common = sorted(one.keys() & other.keys())
    freed = sum(other[seed] and not one[seed] for seed in common)
    bound = sum(one[seed] and not other[seed] for seed in common)
    before = sum(other[seed] for seed in common)
    return [Beside(label, changed, base, freed, bound, len(common), before, _p(freed, bound))]


def _p(freed: int, bound: int) -> float:
    from scipy.stats import binomtest

    return float(binomtest(freed, freed + bound).pvalue) if freed + bound else 1.0


def together(found: Iterable[Beside]) -> list[Beside]:
    """The same with p by Holm's rule over those that have enough seeds."""
    own = [b for b in found if b.judged]
    corrected = holm(np.array([b.p for b in own])) if own else np.zeros(0)
    return [dataclasses.replace(b, holm=float(p)) for b, p in zip(own, corrected, strict=True)]


def freed_and_bound(found: Sequence[Beside]) -> tuple[int, int]:
    """How many comparisons free seeds, and how many bind some, by Holm's rule."""
    return sum(b.frees for b in found), sum(b.binds for b in found)
