"""Results of runs beside each other."""

import dataclasses
import itertools

import numpy as np
import pytest
from made_results import result

from feelgood.core.errors import FeelgoodError
from feelgood.report.ranking import compare_results, rank_results


def test_results_are_paired_by_seed_not_by_position() -> None:
    a = result("a", [1.0, 2.0, 3.0], seeds=(5, 6, 7))
    b = result("b", [30.0, 20.0, 9.0], seeds=(7, 6, 1))
    difference, better = compare_results(a, b)
    assert difference.mean == ((2.0 - 20.0) + (3.0 - 30.0)) / 2
    assert (difference.count, better.value) == (2, 1.0)
    assert compare_results(a, b, "simple_regret")[0].mean == difference.mean / 2
    with pytest.raises(FeelgoodError, match="no seed in common"):
        compare_results(a, dataclasses.replace(b, seeds=(0, 1, 2)))
    with pytest.raises(FeelgoodError, match="different problems"):
        compare_results(a, dataclasses.replace(b, rounds=99))


def test_results_are_ranked_per_testbed_and_over_all() -> None:
    lots = itertools.product(("linear-20", "linear-40"), (("a", 0.0), ("b", 10.0)))
    results = [result(n, shift + np.arange(4) % 3, testbed=t) for t, (n, shift) in lots]
    each, overall = rank_results(results)
    assert {t: r.winner for t, r in each.items()} == {"linear-20": "a", "linear-40": "a"}
    assert overall is not None
    assert overall.winner == "a"
    assert rank_results(results[:2])[1] is None
    with pytest.raises(FeelgoodError, match="twice"):
        rank_results([results[0], results[0]])
    named = rank_results([results[0], results[0]], names=["x", "y"])[0]
    assert named["linear-20"].winner is None
