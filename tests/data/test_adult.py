"""Adult: its published files, and its contexts as numpy would encode them."""

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
    columns = dict(zip(data["num_names"].tolist(), data["X_num"].T.tolist(), strict=True))
    for i, category in enumerate(data["cat_names"].tolist()):
        columns[category] = data[f"categories_{category}"][data["X_cat"][:, i]].tolist()
    labels = data["y_names"][data["y"]].tolist()
    rows = list(zip(*(columns[c] for c in data["column_order"].tolist()), labels, strict=True))
    split = int((data["is_test"] == 0).sum())
    test = as_lines(rows[split:], ", ").replace("\n", ".\n")
    return {
        "adult.data": (as_lines(rows[:split], ", ") + "\n").encode(),
        "adult.test": ("|1x3 Cross validator\n" + test + "\n").encode(),
    }


def test_the_converter_gives_the_same_arrays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_converter(
        "adult", published, tmp_path, monkeypatch, same_bytes=("adult.data", "adult.test")
    )


def test_classes_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    check_classes("adult", [37155, 11687], monkeypatch)


def test_the_testbed() -> None:
    check_testbed("adult", arms=2, paper=14, standard=108, rounds=10_000)


def test_adult_as_numpy_would_encode_it() -> None:
    paper, standard = built("adult"), built("adult", preprocess="standard")
    data = load_dataset("adult")
    columns: dict[str, np.ndarray] = {}
    for kind in ("num", "cat"):
        names = data[f"{kind}_names"].tolist()
        columns |= dict(zip(names, data[f"X_{kind}"].T.astype(np.float64), strict=True))
    order = data["column_order"].tolist()
    expected = unit(np.stack([columns[name] for name in order], axis=1)[:200])
    np.testing.assert_allclose(first_contexts(paper), expected, atol=1e-6)
    blocks = [
        columns[name][:, None] == np.arange(columns[name].max() + 1)
        if name in data["cat_names"]
        else standardised(columns[name][:, None])
        for name in order
    ]
    np.testing.assert_allclose(first_contexts(standard), unit(np.hstack(blocks)[:200]), atol=1e-5)
