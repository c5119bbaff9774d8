"""Covertype: its published file, and which columns are standardised."""

import gzip
from pathlib import Path

import numpy as np
import pytest
from real_data import (
    as_lines,
    built,
    check_classes,
    check_converter,
    check_testbed,
    first_contexts,
    standardised,
    unit,
)

from feelgood.data.datasets import load_dataset


def published(data: dict[str, np.ndarray]) -> dict[str, bytes]:
    table = np.c_[data["X"], data["y"].astype(np.int16) + 1]
    return {"covtype.data.gz": gzip.compress(as_lines(table.tolist(), ",").encode(), 1)}


@pytest.mark.slow
def test_the_converter_gives_the_same_arrays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_converter("covertype", published, tmp_path, monkeypatch)


@pytest.mark.slow
def test_classes_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    check_classes("covertype", [211840, 283301, 35754, 2747, 9493, 17367, 20510], monkeypatch)


def test_the_testbed() -> None:
    check_testbed("covertype", arms=7, paper=54, standard=54, rounds=15_000)


def test_covertype_standardises_ten_columns_and_leaves_the_flags() -> None:
    testbed = built("covertype", preprocess="standard")
    x = load_dataset("covertype")["X"].astype(np.float64)
    expected = np.hstack([standardised(x[:, :10])[:200], x[:200, 10:]])
    np.testing.assert_allclose(first_contexts(testbed), unit(expected), atol=1e-5)
