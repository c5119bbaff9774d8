"""Results of runs beside each other: paired differences and rankings over common seeds."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from feelgood.core.arguments import parse_choice, parse_values
from feelgood.core.errors import FeelgoodError, shown
from feelgood.engine.results import AgentResult
from feelgood.stats.intervals import Estimate
from feelgood.stats.pairs import PairedDifference, paired_difference, probability_better
from feelgood.stats.ranks import Ranking, rank, rank_across
from feelgood.stats.summary import PerSeed

RegretMetric = Literal["final_regret", "simple_regret"]


def agent_results(results: Any) -> list[AgentResult]:
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
    results = agent_results(results)
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
    metric: RegretMetric | Any = "final_regret",
) -> PerSeed:
    """The metric at these seeds; NaN where the chain diverged."""
    (result,) = agent_results([result])
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


def compare_results(
    a: AgentResult | Any,
    b: AgentResult | Any,
    metric: RegretMetric | Any = "final_regret",
    level: float | Any = 0.95,
) -> tuple[PairedDifference, Estimate]:
    """a − b over common seeds, and how often a is the better one.

    **Example:**

    >>> import feelgood
    >>> from feelgood.report.ranking import compare_results
    >>> linucb, uniform = feelgood.run("linear-20", ["linucb", "uniform"], rounds=200, seeds=5)
    >>> difference, share = compare_results(linucb, uniform)
    >>> difference.mean < 0.0, share.value  # lower regret, on every seed
    (True, 1.0)
    """
    a, b = agent_results([a, b])
    _same_problem([a, b])
    seeds = common_seeds([a, b])
    of_a, of_b = values_at(a, seeds, metric), values_at(b, seeds, metric)
    return paired_difference(of_a, of_b, level), probability_better(of_a, of_b, level)


def rank_results(
    results: Sequence[AgentResult] | Any,
    names: Sequence[str] | Any | None = None,
    metric: RegretMetric | Any = "final_regret",
    level: float | Any = 0.05,
) -> tuple[dict[str, Ranking], Ranking | None]:
    """A ranking for each testbed, and one over all of them (None for a single testbed).

    `names` tells results of the same agent with different settings apart; by default the agents'.

    **Example:**

    >>> import feelgood
    >>> from feelgood.report.ranking import rank_results
    >>> result = feelgood.run("linear-20", ["uniform", "linucb"], rounds=200, seeds=5)
    >>> by_testbed, _ = rank_results(result.results)
    >>> by_testbed["linear-20"].verdict
    'linucb is the best (level 0.05, 5 seeds).'
    """
    results, metric = agent_results(results), _metric(metric)
    if names is not None and (
        not isinstance(names, (list, tuple)) or not all(isinstance(name, str) for name in names)
    ):
        raise FeelgoodError(f"names = {shown(names)} is not allowed: use a list of texts.")
    labels = [r.agent for r in results] if names is None else list(names)
    if len(labels) != len(results):
        raise FeelgoodError(
            f"there are {len(labels)} names for {len(results)} results: give one per result."
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
