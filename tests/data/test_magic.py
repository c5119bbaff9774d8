"""Magic: its published file and its testbed."""

from pathlib import Path

import numpy as np
import pytest
from real_data import as_lines, check_classes, check_converter, check_testbed


def published(data: dict[str, np.ndarray]) -> dict[str, bytes]:
    labels = data["y_names"][data["y"]].tolist()
    rows = [(*row, label) for row, label in zip(data["X"].tolist(), labels, strict=True)]
    return {"magic04.data": as_lines(rows, ",").encode()}


def test_the_converter_gives_the_same_arrays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_converter("magic", published, tmp_path, monkeypatch)


def test_classes_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    check_classes("magic", [12332, 6688], monkeypatch)


def test_the_testbed() -> None:
    check_testbed("magic", arms=2, paper=10, standard=10, rounds=10_000)
