"""The measures of a run against their definitions, written out."""

import itertools

import numpy as np
import pytest

from feelgood.engine.tally import SIMPLE_REGRET_WINDOW, Tally, curve_grid

ROUNDS = [1, 2, 3, 7, 10, 49, 50, 51, 99, 100, 199, 200, 201, 1_000, 10_000, 123_457, 100_000_000]


@pytest.mark.parametrize("rounds", ROUNDS)
def test_curves_are_recorded_on_a_small_grid_dense_early(rounds: int) -> None:
    grid = curve_grid(rounds)
    assert len(grid) <= 200
    assert grid[0] == 1
    assert grid[-1] == rounds
    assert np.all(np.diff(grid) > 0)
    if rounds <= 100:
        np.testing.assert_array_equal(grid, np.arange(1, rounds + 1))
    else:
        np.testing.assert_array_equal(grid[:4], [1, 2, 3, 4])
        # Never a gap of more than a hundredth of the run, rounding aside.
        assert np.diff(grid).max() <= rounds / 100 + 1


def tally_of(regret: np.ndarray, arms: np.ndarray, cuts: list[int], health: np.ndarray) -> Tally:
    rounds, chains = regret.shape
    tally = Tally(rounds, chains, 4, ("step",))
    edges = [0, *cuts, rounds]
    for start, stop in itertools.pairwise(edges):
        block = slice(start, stop)
        tally.add(regret[block], arms[block], {"step": health[block]})
    return tally


@pytest.mark.parametrize("rounds", [1, 30, 499, 500, 501, 1337])
@pytest.mark.parametrize("pieces", [1, 2, 7])
def test_tally_is_the_brute_force_however_the_run_is_cut(rounds: int, pieces: int) -> None:
    rng = np.random.default_rng([rounds, pieces])
    chains = 3
    regret = np.maximum(rng.normal(size=(rounds, chains)), 0).astype(np.float32)
    arms = rng.integers(0, 4, size=(rounds, chains)).astype(np.int32)
    health = rng.random((rounds, chains)).astype(np.float32)
    cuts = sorted({int(c) for c in rng.integers(1, max(rounds, 2), size=pieces - 1)} - {rounds})
    tally = tally_of(regret, arms, cuts, health)
    exact = regret.astype(np.float64)
    grid = curve_grid(rounds)
    np.testing.assert_allclose(tally.total, exact.sum(axis=0), rtol=1e-12)
    np.testing.assert_allclose(tally.late, exact[-SIMPLE_REGRET_WINDOW:].sum(axis=0), rtol=1e-12)
    np.testing.assert_array_equal(tally.best, (regret == 0).sum(axis=0))
    assert tally.done == rounds
    for chain in range(chains):
        counts = np.bincount(arms[:, chain], minlength=4)
        np.testing.assert_array_equal(tally.counts[chain], counts)
        for i, r in enumerate(grid):
            assert tally.curve[chain, i] == pytest.approx(exact[:r, chain].sum(), rel=1e-12)
            before = grid[i - 1] if i else 0
            mean = health[before:r, chain].mean(dtype=np.float64)
            assert tally.health_means()["step"][chain, i] == pytest.approx(mean, rel=1e-6)


def test_tally_adds_long_runs_in_float64() -> None:
    """A million rounds of regret 0.1: float32 sums would be off by a hundredth."""
    regret = np.full((100_000, 1), 0.1, np.float32)
    tally = Tally(1_000_000, 1, 2, ())
    for _ in range(10):
        tally.add(regret, np.zeros((100_000, 1), np.int32), {})
    assert tally.total[0] == pytest.approx(1e6 * float(np.float32(0.1)), rel=1e-12)
