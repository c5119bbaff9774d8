"""Summaries over seeds against NumPy."""

import math

import numpy as np
import pytest

from feelgood.stats.summary import Summary


def test_summary_is_that_of_numpy() -> None:
    values = np.random.default_rng(0).normal(size=11)
    s = Summary.of(values)
    assert s.count == 11
    assert s.mean == pytest.approx(values.mean())
    assert s.std == pytest.approx(values.std(ddof=1))
    assert s.sem == pytest.approx(values.std(ddof=1) / math.sqrt(11))
    quartiles = np.quantile(values, [0.25, 0.5, 0.75])
    np.testing.assert_allclose([s.q25, s.median, s.q75], quartiles)


def test_summary_leaves_diverged_chains_out_and_counts_the_rest() -> None:
    s = Summary.of(np.array([1.0, np.nan, 3.0]))
    assert (s.count, s.mean, s.median) == (2, 2.0, 2.0)
    assert s.std == pytest.approx(math.sqrt(2))


def test_summary_of_one_value_and_of_none() -> None:
    one = Summary.of(np.array([4.0]))
    assert (one.count, one.mean, one.median) == (1, 4.0, 4.0)
    assert math.isnan(one.std) and math.isnan(one.sem)
    none = Summary.of(np.array([np.nan]))
    assert none.count == 0
    assert all(math.isnan(v) for v in (none.mean, none.std, none.sem, none.median, none.q25))
