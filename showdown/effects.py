"""Does one thing help beside another? Paired differences of regret, each with a test.

Regret is a loss: a negative difference is a gain. A verdict is said of a family of such effects
(`showdown.families`), because many tests find something by chance.
"""

import dataclasses
import functools
import math
from collections.abc import Sequence

import numpy as np

from feelgood.core.errors import FeelgoodError
from feelgood.engine.results import AgentResult
from feelgood.report.ranking import common_seeds, values_at
from feelgood.stats.intervals import Estimate
from feelgood.stats.pairs import diverged_last, equal, probability_better
from feelgood.stats.studentised import StudentisedMean, studentised
from showdown.wording import enumeration, estimate, number, seeds_span, signed

__all__ = [
    "FEWEST_SEEDS",
    "LEVEL",
    "Effect",
    "distinct",
    "effect",
    "enumeration",
    "estimate",
    "mean_and_median",
    "number",
    "regret_text",
    "seeds_text",
    "signed",
]

#: No claim rests on fewer common seeds than this.
FEWEST_SEEDS = 20
LEVEL = 0.95
#: A difference of so many times the larger regret tells nothing.
FAR_OFF = 3.0


@dataclasses.dataclass(frozen=True)
class Effect:
    """`changed` beside `base` over common seeds; `why` says why nothing can be said."""

    label: str
    changed: AgentResult | None
    base: AgentResult | None
    #: Regret of both on the common seeds on which neither diverged; empty where there are none.
    with_it: np.ndarray
    without: np.ndarray
    seeds: tuple[int, ...] = ()
    difference: StudentisedMean | None = None
    better: Estimate | None = None
    why: str = ""

    @property
    def tested(self) -> bool:
        """Whether it can be judged."""
        return self.difference is not None and not self.why

    @property
    def testbed(self) -> str:
        """Where it was seen."""
        run = self.changed or self.base
        return run.testbed if run else "–"

    @property
    def agent(self) -> str:
        """Whose effect it is."""
        return self.changed.agent if self.changed else "–"

    @property
    def differences(self) -> np.ndarray:
        """Seed by seed; equal up to rounding is equal."""
        same = equal(self.with_it, self.without)
        return np.where(same, 0.0, self.with_it - self.without)

    @property
    def ends(self) -> tuple[float | None, float | None]:
        """The interval's; None where an end is so far off that it tells nothing.

        Regrets are not negative, so that a difference is hardly larger than the larger of both.
        Where few seeds differ, the bootstrap may not bound it.
        """
        if self.difference is None:
            return None, None
        most = FAR_OFF * max(float(self.without.mean()), float(self.with_it.mean()))
        low, high = self.difference.low, self.difference.high
        return (low if low >= -most else None), (high if high <= most else None)

    @property
    def ties(self) -> int:
        """Seeds with the same regret up to rounding."""
        return int(equal(self.with_it, self.without).sum())


def effect(label: str, changed: AgentResult | None, base: AgentResult | None) -> Effect:
    """What `changed` does to the regret of `base`, or why that cannot be said."""
    nothing = np.zeros(0)
    if changed is None or base is None:
        return Effect(label, changed, base, nothing, nothing, why="not run")
    try:
        seeds = common_seeds([changed, base])
    except FeelgoodError:
        return Effect(label, changed, base, nothing, nothing, why="no seed in common")
    of_changed, of_base = values_at(changed, seeds), values_at(base, seeds)
    whole = np.isfinite(of_changed) & np.isfinite(of_base)
    better = _better(of_changed.tobytes(), of_base.tobytes())
    kept = tuple(seed for seed, fine in zip(seeds, whole, strict=True) if fine)
    made = Effect(label, changed, base, of_changed[whole], of_base[whole], kept, better=better)
    why = ""
    if len(kept) < len(seeds):
        why = f"chains diverged on {len(seeds) - len(kept)} of {len(seeds)} seeds"
    elif len(seeds) < FEWEST_SEEDS:
        why = f"{len(seeds)} seeds: not enough yet"
    return dataclasses.replace(made, difference=_test(made.differences.tobytes()), why=why)


# Several pages show the same pair.


@functools.lru_cache(maxsize=8192)
def _test(differences: bytes) -> StudentisedMean:
    return studentised(np.frombuffer(differences), LEVEL)


@functools.lru_cache(maxsize=8192)
def _better(changed: bytes, base: bytes) -> Estimate:
    return probability_better(np.frombuffer(changed), np.frombuffer(base), LEVEL)


def distinct(effects: Sequence[Effect]) -> list[Effect]:
    """Each pair once: a smoothed agent that plays as the plain one does is no second one.

    Pairs are the same where both of them have the same regret on every seed, up to rounding.
    """
    kept: list[Effect] = []
    for e in effects:
        if e.difference is None or not any(_same_pair(e, other) for other in kept):
            kept.append(e)
    return kept


def _same_pair(a: Effect, b: Effect) -> bool:
    return _same_run(a.changed, b.changed) and _same_run(a.base, b.base)


def _same_run(a: AgentResult | None, b: AgentResult | None) -> bool:
    if a is None or b is None or (a.testbed, a.seeds) != (b.testbed, b.seeds):
        return False
    return bool(equal(diverged_last(a.final_regret), diverged_last(b.final_regret)).all())


def seeds_text(effects: Sequence[Effect]) -> str:
    """`30 seeds`, or `30 to 100 seeds`."""
    return seeds_span([len(e.seeds) for e in effects if e.tested])


def mean_and_median(values: np.ndarray) -> tuple[float, float]:
    """Both; NaN of nothing."""
    if not len(values):
        return math.nan, math.nan
    return float(values.mean()), float(np.median(values))


def regret_text(run: AgentResult, mark: str = "", seeds: Sequence[int] = ()) -> str:
    """`89.2† (87.0), 2 diverged`: mean and median of the chains that did not, and who did.

    Of these seeds, or of all.
    """
    regrets = values_at(run, seeds or run.seeds)
    whole = regrets[np.isfinite(regrets)]
    mean, median = mean_and_median(whole)
    lost = len(regrets) - len(whole)
    return f"{number(mean)}{mark} ({number(median)})" + (f", {lost} diverged" if lost else "")
