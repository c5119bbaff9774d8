"""Financial: its published file, and the portfolios."""

from pathlib import Path

import numpy as np
import pytest
from real_data import as_lines, built, check_converter, check_testbed

from feelgood.data.datasets import load_dataset
from feelgood.data.financial import portfolio_weights


def published(data: dict[str, np.ndarray]) -> dict[str, bytes]:
    rows = [data["header_as_published"].tolist(), *data["X"].tolist()]
    return {"raw_stock_contexts": as_lines(rows, " ").encode()}


def test_the_converter_gives_the_same_arrays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_converter("financial", published, tmp_path, monkeypatch)


def test_the_testbed() -> None:
    check_testbed("financial", arms=8, paper=21, standard=21, rounds=10_000)


def test_financial_portfolios_are_fixed_combinations_of_length_one() -> None:
    testbed, other = built("financial"), built("financial", portfolios=1)
    weights = portfolio_weights(21, 0)
    np.testing.assert_allclose(np.linalg.norm(weights, axis=0), 1)
    # numpy's legacy generator is frozen: these weights are part of the definition.
    np.testing.assert_allclose(weights[0, :3], [0.040265, 0.226853, 0.077221], atol=1e-6)
    x = load_dataset("financial")["X"]
    np.testing.assert_allclose(testbed.payoffs, (x / x.std(axis=0)) @ weights, rtol=1e-4, atol=1e-5)
    assert not np.allclose(testbed.payoffs, other.payoffs)
