"""Mushroom: its published file and its testbed."""

from pathlib import Path

import numpy as np
import pytest
from real_data import as_lines, check_classes, check_converter, check_testbed


def published(data: dict[str, np.ndarray]) -> dict[str, bytes]:
    labels = data["y_names"][data["y"]]
    return {"agaricus-lepiota.data": as_lines(np.c_[labels, data["X"]].tolist(), ",").encode()}


def test_the_converter_gives_the_same_arrays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_converter(
        "mushroom", published, tmp_path, monkeypatch, same_bytes=("agaricus-lepiota.data",)
    )


def test_classes_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    check_classes("mushroom", [4208, 3916], monkeypatch)


def test_the_testbed() -> None:
    check_testbed("mushroom", arms=2, paper=22, standard=117, rounds=10_000)
