"""Jester: its published file, and what a joke pays."""

from pathlib import Path

import numpy as np
import pytest
from real_data import as_lines, built, check_converter, check_testbed, first_contexts, unit

from feelgood.data.datasets import load_dataset
from feelgood.engine.environment import environment


def published(data: dict[str, np.ndarray]) -> dict[str, bytes]:
    ratings = zip(data["n_rated"].tolist(), data["ratings_all"].tolist(), strict=True)
    rows = [(count, *(f"{value / 100:g}" for value in row)) for count, row in ratings]
    return {"jester-data-1.csv": as_lines(rows, ",").encode()}


@pytest.mark.slow
def test_the_converter_gives_the_same_arrays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_converter("jester", published, tmp_path, monkeypatch)


def test_the_testbed() -> None:
    check_testbed("jester", arms=8, paper=32, standard=32, rounds=10_000)


def test_jester_rewards_are_the_ratings_of_eight_jokes() -> None:
    testbed = built("jester")
    ratings = load_dataset("jester")["X40"] / 100
    contexts, _, means = environment(testbed, [0], 50)
    seen = {tuple(row) for row in np.rint(ratings[:, 32:] * 100).tolist()}
    assert {tuple(row) for row in np.rint(means[..., 0] * 1000).tolist()} <= seen
    np.testing.assert_allclose(first_contexts(testbed), unit(ratings[:200, :32]), atol=1e-6)
    np.testing.assert_allclose(np.asarray(testbed.payoffs), ratings[:, 32:] / 10, atol=1e-6)
    assert np.abs(np.asarray(means)).max() <= 1
    assert contexts.shape == (50, 32, 1)
