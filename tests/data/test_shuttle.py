"""Shuttle: its published files and its testbed."""

from pathlib import Path

import numpy as np
import pytest
from real_data import as_lines, check_classes, check_converter, check_testbed, compress


def published(data: dict[str, np.ndarray]) -> dict[str, bytes]:
    table = np.c_[data["X"], data["y"].astype(np.int16) + 1]
    split = int((data["is_test"] == 0).sum())
    return {
        "shuttle.trn.Z": compress(as_lines(table[:split].tolist(), " ").encode()),
        "shuttle.tst": as_lines(table[split:].tolist(), " ").encode(),
    }


def test_the_converter_gives_the_same_arrays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_converter("shuttle", published, tmp_path, monkeypatch, same_bytes=("shuttle.tst",))


def test_classes_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    check_classes("shuttle", [45586, 50, 171, 8903, 3267, 10, 13], monkeypatch)


def test_the_testbed() -> None:
    check_testbed("shuttle", arms=7, paper=9, standard=9, rounds=10_000)
