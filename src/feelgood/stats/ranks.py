"""Ranks, and who may be the best: on one testbed, and over several."""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float

from feelgood.core.arguments import parse_level, parse_table
from feelgood.core.errors import FeelgoodError, shown
from feelgood.stats.pairs import diverged_last, equal
from feelgood.stats.student import t_two_sided
from feelgood.stats.summary import PerSeed


@dataclasses.dataclass(frozen=True)
class Standing:
    """One contender of a ranking.

    `p` is the corrected p of "somebody is better"; `may_be_best` says whether it stays in the
    set that holds the best contender.
    """

    name: str
    rank: float
    mean: float
    median: float
    p: float
    may_be_best: bool
    diverged: int


@dataclasses.dataclass(frozen=True)
class Ranking:
    """Contenders from the lowest mean up, and the winner if there is one."""

    standings: tuple[Standing, ...]
    level: float
    seeds: int

    @property
    def winner(self) -> str | None:
        """The only contender that may be the best; None is "no winner"."""
        left = [s.name for s in self.standings if s.may_be_best]
        return left[0] if len(left) == 1 and len(self.standings) > 1 else None

    @property
    def verdict(self) -> str:
        """The answer in a sentence."""
        if self.winner is not None:
            return f"{self.winner} is the best (level {self.level:g}, {self.seeds} seeds)."
        left = [s.name for s in self.standings if s.may_be_best]
        return (
            f"no winner: {', '.join(left) or 'none of them'} may be the best "
            f"(level {self.level:g}, {self.seeds} seeds)."
        )


def rank(values: Mapping[str, PerSeed] | Any, level: float | Any = 0.05) -> Ranking:
    """Who may be the best on one testbed, by mean over common seeds.

    **The rule.** There are k contenders. One leaves the set of possible bests if another one has a
    lower mean, and a paired two-sided t-test between the two has p ≤ level / (k − 1).
    These are multiple comparisons with the best (Hsu, "Simultaneous confidence intervals for all
    distances from the best", 1981), with Bonferroni's bound. A contender that is left alone is the
    winner; else there is none.

    **The level.** A truly best contender leaves the set with probability at most level / 2. Each of
    its k − 1 tests errs to that side with probability level / (2(k − 1)). If two or more are
    equally good, a winner is named with probability at most `level`. Both hold as far as the t-test
    does: with very few or very heavy-tailed seeds they are approximate.

    A contender with a diverged chain has infinite mean regret: it comes last and cannot win.
    """
    values, level = parse_table("values", values), parse_level("level", level)
    if not values:
        raise FeelgoodError("there is nothing to rank: give at least one contender.")
    names, sizes = list(values), {len(v) for v in values.values()}
    if len(sizes) > 1:
        raise FeelgoodError(
            f"contenders have {', '.join(map(str, sorted(sizes)))} seeds: rank over common ones."
        )
    table = np.array([diverged_last(values[name]) for name in names])
    seeds = table.shape[1]
    if seeds < 2:
        raise FeelgoodError(f"{seeds} seed is too few for a ranking: use at least 2.")
    means = table.mean(axis=1)
    ranks = average_ranks(means)
    tests = max(len(names) - 1, 1)
    standings = []
    for i, name in enumerate(names):
        better = (means < means[i]) & ~equal(means, means[i])
        # Against an infinite mean no test is needed: a finite one is lower.
        p = 0.0 if np.isinf(means[i]) and better.any() else 1.0
        if p and better.any():
            pairs = table[i] - table[better]
            pairs = np.where(equal(table[i][None], table[better]), 0.0, pairs)
            p = min(p, tests * _least_p(pairs, seeds - 1.0))
        standings.append(
            Standing(
                name=name,
                rank=float(ranks[i]),
                mean=float(means[i]),
                median=float(np.median(table[i])),
                p=p,
                may_be_best=p > level and bool(np.isfinite(means[i])),
                diverged=int((~np.isfinite(values[name])).sum()),
            )
        )
    return Ranking(tuple(sorted(standings, key=lambda s: s.rank)), level, seeds)


def _least_p(pairs: Float[np.ndarray, "others seeds"], df: float) -> float:
    """The smallest p of these paired differences: that of the largest t, for all have one `df`."""
    differences = pairs.mean(axis=1)
    errors = pairs.std(axis=1, ddof=1) / math.sqrt(pairs.shape[1])
    if (errors == 0.0).any():  # all differences are above 0 here, so equality is impossible
        return 0.0
    return t_two_sided(float((differences / errors).max()), df)


def average_ranks(values: Float[np.ndarray, " contenders"]) -> Float[np.ndarray, " contenders"]:
    """Ranks from 1 for the lowest; values equal up to rounding share the mean of their ranks."""
    tied = equal(values[None, :], values[:, None])
    below = (values[None, :] < values[:, None]) & ~tied
    return below.sum(axis=1) + (tied.sum(axis=1) + 1) / 2.0


def rank_across(
    testbeds: Mapping[str, Mapping[str, PerSeed]] | Any, level: float | Any = 0.05
) -> Ranking:
    """Who may be the best over several testbeds that count alike.

    For each seed the contenders are ranked on every testbed (a diverged chain last). The ranks are
    averaged over testbeds: one number per seed and contender, free of the testbeds' scales. The
    rule and the level of `rank` are then applied to these. It answers for these testbeds, not for
    testbeds in general.
    """
    if not isinstance(testbeds, Mapping) or not testbeds:
        raise FeelgoodError(
            f"testbeds = {shown(testbeds)} is not allowed: use a dictionary of what `rank` takes."
        )
    testbeds = {name: parse_table("testbeds", values) for name, values in testbeds.items()}
    names = {tuple(sorted(values)) for values in testbeds.values()}
    if len(names) != 1:
        raise FeelgoodError(
            "the testbeds have different contenders: run every one of them on every testbed."
        )
    (contenders,) = names
    sizes = {len(v) for values in testbeds.values() for v in values.values()}
    if len(sizes) > 1:
        raise FeelgoodError(
            f"contenders have {', '.join(map(str, sorted(sizes)))} seeds: rank over common ones."
        )
    (seeds,) = sizes
    mean_ranks = np.zeros((len(contenders), seeds))
    for values in testbeds.values():
        table = np.array([diverged_last(values[name]) for name in contenders])
        mean_ranks += np.stack([average_ranks(column) for column in table.T], axis=1)
    mean_ranks /= len(testbeds)
    overall = rank(dict(zip(contenders, mean_ranks, strict=True)), level)
    diverged = {
        name: sum(int((~np.isfinite(v[name])).sum()) for v in testbeds.values())
        for name in contenders
    }
    return dataclasses.replace(
        overall,
        standings=tuple(
            dataclasses.replace(s, diverged=diverged[s.name]) for s in overall.standings
        ),
    )
