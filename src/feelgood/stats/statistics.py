"""Statistics that say how sure: tests, intervals, rankings, regret against compute.

Pure functions on host arrays in float64; the last section applies them to `AgentResult`. Regret
is a loss, so lower is better throughout. A chain that diverged is NaN: where a number is needed
it is left out and counted, where an order is needed it counts as infinite regret.
"""

import dataclasses
import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import NormalDist
from typing import Any, Literal

import numpy as np
from jaxtyping import Float, Int

from feelgood.core.arguments import (
    parse_choice,
    parse_level,
    parse_number,
    parse_table,
    parse_values,
    parse_whole,
)
from feelgood.core.errors import FeelgoodError, shown
from feelgood.engine.results import AgentResult
from feelgood.engine.tally import Summary

Values = Float[np.ndarray, " seeds"]
#: Values whose number is not known to be that of others beside them.
Others = Float[np.ndarray, " others"]
Metric = Literal["final_regret", "simple_regret"]

#: Resamples behind a bootstrap interval: its ends then move by a few per cent of its width.
DRAWS = 4_000


# Student's t ---------------------------------------------------------------------------------


def _beta_fraction(a: float, b: float, x: float) -> float:
    """The continued fraction of the incomplete beta function, by Lentz' method."""
    tiny = 1e-300
    c, d = 1.0, 1.0 / (1.0 - (a + b) * x / (a + 1.0) or tiny)
    value = d
    for m in range(1, 1_000):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1.0 / (1.0 + term * d or tiny)
            c = 1.0 + term / c or tiny
            value *= d * c
        if abs(d * c - 1.0) < 1e-15:
            break
    return value


def _incomplete_beta(a: float, b: float, x: float) -> float:
    """I_x(a, b), regularised."""
    if x <= 0.0 or x >= 1.0:
        return float(x >= 1.0)
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    front = math.exp(log_front + a * math.log(x) + b * math.log1p(-x))
    if x < (a + 1.0) / (a + b + 2.0):
        return front * _beta_fraction(a, b, x) / a
    return 1.0 - front * _beta_fraction(b, a, 1.0 - x) / b


def t_two_sided(t: float | Any, df: float | Any) -> float:
    """P(|T| ≥ |t|) for Student's law with `df` degrees of freedom."""
    t, df = parse_number("t", t, finite=False), _degrees(df)
    if math.isinf(t):
        return 0.0
    return _incomplete_beta(df / 2.0, 0.5, df / (df + t * t))


def t_quantile(level: float | Any, df: float | Any) -> float:
    """The t with P(|T| ≥ t) = 1 − level, by bisection."""
    return _t_quantile(parse_level("level", level), _degrees(df))


def _degrees(df: Any) -> float:
    """Degrees of freedom; they may be missing (NaN)."""
    number = parse_number("df", df, "a number above 0", finite=False)
    if number <= 0.0:
        raise FeelgoodError(f"df = {shown(df)} is not allowed: use a number above 0.")
    return number


@functools.cache
def _t_quantile(level: float, df: float) -> float:
    low, high = 0.0, 1.0
    while t_two_sided(high, df) > 1.0 - level:
        high *= 2.0
    for _ in range(200):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if t_two_sided(middle, df) > 1.0 - level else (low, middle)
    return high


def _p_of_mean(difference: float, error: float, df: float) -> float:
    """Two-sided p of a difference; without any spread, equality is certain or impossible."""
    if error == 0.0:
        return 1.0 if difference == 0.0 else 0.0
    return t_two_sided(difference / error, df)


# Two independent means -----------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class WelchTest:
    """Do two independent samples have the same mean?

    `p` is two-sided and NaN where a sample has fewer than two values: then nothing is rejected.
    """

    difference: float
    error: float
    df: float
    p: float
    level: float
    dropped: tuple[int, int] = (0, 0)

    @property
    def rejects(self) -> bool:
        """Whether the means differ at the level."""
        return self.p <= self.level


def welch(
    mean_a: float | Any,
    std_a: float | Any,
    n_a: int | Any,
    mean_b: float | Any,
    std_b: float | Any,
    n_b: int | Any,
    level: float | Any = 0.01,
) -> WelchTest:
    """Welch's test of mean a − mean b = 0 from means, sample deviations (n − 1) and sizes.

    B. L. Welch, "The generalization of Student's problem when several different population
    variances are involved", Biometrika 1947.
    """
    named = {"mean_a": mean_a, "std_a": std_a, "mean_b": mean_b, "std_b": std_b}
    numbers = [parse_number(name, value, finite=False) for name, value in named.items()]
    mean_a, std_a, mean_b, std_b = numbers
    n_a, n_b = parse_whole("n_a", n_a, 0, 10**15), parse_whole("n_b", n_b, 0, 10**15)
    level = parse_level("level", level)
    difference = mean_a - mean_b
    if min(n_a, n_b) < 2 or not all(math.isfinite(x) for x in numbers):
        return WelchTest(difference, math.nan, math.nan, math.nan, level)
    share_a, share_b = std_a**2 / n_a, std_b**2 / n_b
    error = math.sqrt(share_a + share_b)
    df = float(n_a + n_b - 2)
    if error > 0.0:
        part = share_a / (share_a + share_b)
        df = 1.0 / (part**2 / (n_a - 1) + (1.0 - part) ** 2 / (n_b - 1))
    return WelchTest(difference, error, df, _p_of_mean(difference, error, df), level)


def welch_samples(a: Values | Any, b: Others | Any, level: float | Any = 0.01) -> WelchTest:
    """Welch's test on two samples; values that are not finite are left out and counted."""
    a, b = parse_values("a", a), parse_values("b", b)
    of_a, of_b = Summary.of(a), Summary.of(b)
    test = welch(of_a.mean, of_a.std, of_a.count, of_b.mean, of_b.std, of_b.count, level)
    return dataclasses.replace(test, dropped=(len(a) - of_a.count, len(b) - of_b.count))


# Intervals -----------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Estimate:
    """A number with its interval, the values it rests on and those that were left out."""

    value: float
    low: float
    high: float
    level: float
    count: int
    dropped: int


_STATISTICS: Mapping[str, Callable[..., Float[np.ndarray, "..."]]] = {
    "mean": np.mean,
    "median": np.median,
}


def bootstrap(
    values: Values | Any,
    statistic: Literal["mean", "median"] | Any = "mean",
    level: float | Any = 0.95,
    draws: int | Any = DRAWS,
    seed: int | Any = 0,
) -> Estimate:
    """Mean or median with a bootstrap interval; the same seed gives the same interval.

    The percentile interval is too short for few values. Its tail is therefore widened to
    α′/2 = Φ(−√(n/(n−1)) t_{1−α/2, n−1}), which makes it Student's interval for Gaussian data
    (Hesterberg, "What teachers should know about the bootstrap", 2015). Coverage is close to
    `level` for light tails and below it for a few heavy-tailed values, as for every interval.
    """
    values, level = parse_values("values", values), parse_level("level", level)
    reduce = _STATISTICS[parse_choice("statistic", statistic, _STATISTICS)]
    draws, seed = parse_whole("draws", draws, 1, 10_000_000), parse_whole("seed", seed, 0)
    kept = values[np.isfinite(values)]
    n, dropped = len(kept), len(values) - len(kept)
    value = float(reduce(kept)) if n else math.nan
    if n < 2:
        return Estimate(value, math.nan, math.nan, level, n, dropped)
    picks = np.random.default_rng(seed).integers(0, n, (draws, n))
    replicates = reduce(kept[picks], axis=1)
    tail = NormalDist().cdf(-math.sqrt(n / (n - 1)) * t_quantile(level, n - 1.0))
    low, high = np.quantile(replicates, [tail, 1.0 - tail])
    return Estimate(value, float(low), float(high), level, n, dropped)


# Pairs over common seeds ---------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class PairedDifference:
    """Mean of a − b over seeds that both have finished; `dropped` counts the other seeds."""

    mean: float
    error: float
    p: float
    low: float
    high: float
    level: float
    count: int
    dropped: int


def paired_difference(
    a: Values | Any,
    b: Others | Any,
    level: float | Any = 0.95,
    draws: int | Any = DRAWS,
    seed: int | Any = 0,
) -> PairedDifference:
    """a − b, seed by seed: mean, standard error, paired t-test and bootstrap interval.

    Agents meet the same contexts and the same noise for a seed, so the difference is known
    better than either mean. A seed on which either chain diverged has no difference: it is
    counted in `dropped`.
    """
    differences = _aligned(parse_values("a", a), parse_values("b", b))
    estimate = bootstrap(differences, "mean", level, draws, seed)
    n = estimate.count
    error, p = math.nan, math.nan
    if n >= 2:
        error = Summary.of(differences).sem
        p = _p_of_mean(estimate.value, error, n - 1.0)
    return PairedDifference(
        estimate.value, error, p, estimate.low, estimate.high, level, n, estimate.dropped
    )


def probability_better(a: Values | Any, b: Others | Any, level: float | Any = 0.95) -> Estimate:
    """How often a has the lower value on the same seed; a tie counts half.

    A chain that diverged loses against one that did not (`dropped` counts the seeds where either
    did; they are in). The interval is Wilson's, which does not collapse when one side wins all.
    """
    a, b, level = parse_values("a", a), parse_values("b", b), parse_level("level", level)
    broken, n = ~np.isfinite(_aligned(a, b)), len(a)
    if n == 0:
        return Estimate(math.nan, math.nan, math.nan, level, 0, 0)
    of_a, of_b = _order(a), _order(b)
    share = float(np.mean(np.where(of_a == of_b, 0.5, of_a < of_b)))
    z = NormalDist().inv_cdf(0.5 + level / 2.0)
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    low, high = max(0.0, centre - half), min(1.0, centre + half)
    return Estimate(share, low, high, level, n, int(broken.sum()))


def _aligned(a: Values, b: Others) -> Values:
    """a − b, NaN where either is not finite; an error for lengths that do not belong together."""
    if len(a) != len(b):
        raise FeelgoodError(
            f"{len(a)} and {len(b)} values cannot be paired: give both over the same seeds."
        )
    whole = np.isfinite(a) & np.isfinite(b)
    return np.subtract(a, b, where=whole, out=np.full(len(a), np.nan))


def _order(values: Values) -> Values:
    """Values for comparisons: a chain that diverged has infinite regret."""
    return np.where(np.isfinite(values), values, np.inf)


# Rankings ------------------------------------------------------------------------------------


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


def rank(values: Mapping[str, Values] | Any, level: float | Any = 0.05) -> Ranking:
    """Who may be the best on one testbed, by mean over common seeds.

    **The rule.** A contender leaves the set of possible bests if some other one has a lower mean
    and a paired two-sided t-test between the two has p ≤ level / (k − 1), with k the number of
    contenders (multiple comparisons with the best: Hsu, "Simultaneous confidence intervals for
    all distances from the best", 1981, with Bonferroni's bound). A contender that is left alone
    is the winner; else there is none.

    **The level.** A truly best contender leaves the set with probability at most level / 2, since
    each of its k − 1 tests errs to that side with probability level / (2(k − 1)). If two or more
    are equally good, a winner is named with probability at most `level`. Both hold as far as the
    t-test does: with very few or very heavy-tailed seeds they are approximate.

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
    table = np.array([_order(values[name]) for name in names])
    seeds = table.shape[1]
    if seeds < 2:
        raise FeelgoodError(f"{seeds} seed is too few for a ranking: use at least 2.")
    means = table.mean(axis=1)
    ranks = average_ranks(means)
    tests = max(len(names) - 1, 1)
    standings = []
    for i, name in enumerate(names):
        better = means < means[i]
        # Against an infinite mean no test is needed: a finite one is lower.
        p = 0.0 if np.isinf(means[i]) and better.any() else 1.0
        if p and better.any():
            p = min(p, tests * _least_p(table[i] - table[better], seeds - 1.0))
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
    """Ranks from 1 for the lowest; equal values share the mean of their ranks."""
    below = (values[None, :] < values[:, None]).sum(axis=1)
    equal = (values[None, :] == values[:, None]).sum(axis=1)
    return below + (equal + 1) / 2.0


def rank_across(
    testbeds: Mapping[str, Mapping[str, Values]] | Any, level: float | Any = 0.05
) -> Ranking:
    """Who may be the best over several testbeds that count alike.

    For each seed the contenders are ranked on every testbed (a diverged chain last), and the
    ranks are averaged over testbeds: one number a seed and contender, free of the testbeds'
    scales. The rule and the level of `rank` are then applied to these. It answers for these
    testbeds, not for testbeds in general.
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
        table = np.array([_order(values[name]) for name in contenders])
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


# Results of runs -----------------------------------------------------------------------------


def _results(results: Any) -> list[AgentResult]:
    """Results of runs: a list of them, or a `RunResult`."""
    if isinstance(results, (str, bytes, Mapping)) or not isinstance(results, Iterable):
        results = [results]
    found = list(results)
    for result in found:
        if not isinstance(result, AgentResult):
            raise FeelgoodError(f"{shown(result)} is no result of a run: give an AgentResult.")
    return found


def _metric(metric: Any) -> str:
    return parse_choice("metric", metric, ("final_regret", "simple_regret"))


def common_seeds(results: Sequence[AgentResult] | Any) -> tuple[int, ...]:
    """The seeds that all results have, in order; an error if there are none."""
    results = _results(results)
    if not results:
        raise FeelgoodError("there are no results: give at least one.")
    shared = set.intersection(*(set(r.seeds) for r in results))
    if not shared:
        raise FeelgoodError(
            f"{', '.join(dict.fromkeys(r.agent for r in results))} have no seed in common: "
            "run them on the same seeds."
        )
    return tuple(sorted(shared))


def values_at(
    result: AgentResult | Any,
    seeds: Sequence[int] | Any,
    metric: Metric | Any = "final_regret",
) -> Values:
    """The metric at these seeds; NaN where the chain diverged."""
    (result,) = _results([result])
    where = {seed: i for i, seed in enumerate(result.seeds)}
    wanted = parse_values("seeds", seeds).tolist()
    for seed in wanted:
        if seed not in where:
            raise FeelgoodError(
                f"{result.agent} has no seed {seed:g}: use seeds that it was run on."
            )
    chosen = np.array([where[seed] for seed in wanted], np.int64)
    values = np.asarray(getattr(result, _metric(metric)), np.float64)[chosen]
    return np.where(result.diverged_at[chosen] >= 0, np.nan, values)


def _same_problem(results: Sequence[AgentResult]) -> None:
    problems = {(r.testbed, tuple(sorted(r.testbed_settings.items())), r.rounds) for r in results}
    if len(problems) > 1:
        shown = ", ".join(sorted({f"{r.testbed} with {r.rounds} rounds" for r in results}))
        raise FeelgoodError(f"results of different problems cannot be paired: {shown}.")


def compare(
    a: AgentResult | Any,
    b: AgentResult | Any,
    metric: Metric | Any = "final_regret",
    level: float | Any = 0.95,
) -> tuple[PairedDifference, Estimate]:
    """a − b over common seeds, and how often a is the better one."""
    a, b = _results([a, b])
    _same_problem([a, b])
    seeds = common_seeds([a, b])
    of_a, of_b = values_at(a, seeds, metric), values_at(b, seeds, metric)
    return paired_difference(of_a, of_b, level), probability_better(of_a, of_b, level)


def rank_results(
    results: Sequence[AgentResult] | Any,
    names: Sequence[str] | Any | None = None,
    metric: Metric | Any = "final_regret",
    level: float | Any = 0.05,
) -> tuple[dict[str, Ranking], Ranking | None]:
    """A ranking for each testbed, and one over all of them (None for a single testbed).

    `names` tells results of the same agent with different settings apart; by default the agents'.
    """
    results, metric = _results(results), _metric(metric)
    if names is not None and (
        not isinstance(names, (list, tuple)) or not all(isinstance(name, str) for name in names)
    ):
        raise FeelgoodError(f"names = {shown(names)} is not allowed: use a list of texts.")
    labels = [r.agent for r in results] if names is None else list(names)
    if len(labels) != len(results):
        raise FeelgoodError(
            f"there are {len(labels)} names for {len(results)} results: give one each."
        )
    by_testbed: dict[str, dict[str, AgentResult]] = {}
    for label, result in zip(labels, results, strict=True):
        group = by_testbed.setdefault(result.testbed, {})
        if label in group:
            raise FeelgoodError(
                f"'{label}' is on {result.testbed} twice: give each result a name of its own."
            )
        group[label] = result
    for group in by_testbed.values():
        _same_problem(list(group.values()))
    seeds = common_seeds(results)
    values = {
        testbed: {label: values_at(r, seeds, metric) for label, r in group.items()}
        for testbed, group in by_testbed.items()
    }
    each = {testbed: rank(group, level) for testbed, group in values.items()}
    return each, rank_across(values, level) if len(values) > 1 else None


@dataclasses.dataclass(frozen=True)
class Compute:
    """What one chain cost: gradient evaluations (None where not recorded) and seconds.

    Chains of a run share one compiled program: `seconds` is a result's share of its run time,
    divided by its chains.
    """

    gradients: float | None
    seconds: float


def compute_of(result: AgentResult | Any) -> Compute:
    """Cost of one chain."""
    (result,) = _results([result])
    recorded = "gradients" in result.health
    gradients = float(gradient_curve(result)[-1]) if recorded else None
    return Compute(gradients, result.run_s / len(result.seeds))


def gradient_curve(result: AgentResult | Any) -> Float[np.ndarray, " points"]:
    """Gradient evaluations of one chain up to each recorded round, mean over living chains."""
    (result,) = _results([result])
    if "gradients" not in result.health:
        raise FeelgoodError(
            f"{result.agent} records no gradient evaluations: compare it by seconds."
        )
    a_round = result.health["gradients"][result.diverged_at < 0]
    if len(a_round) == 0:
        return np.full(len(result.curve_rounds), np.nan)
    widths: Int[np.ndarray, " points"] = np.diff(result.curve_rounds, prepend=0)
    return np.cumsum(a_round.mean(axis=0) * widths)
