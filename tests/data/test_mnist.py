"""MNIST: its published files and its testbed."""

import gzip
from pathlib import Path

import numpy as np
import pytest
from real_data import check_classes, check_converter, check_testbed


def idx(array: np.ndarray) -> bytes:
    head = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes()
    return gzip.compress(head + array.tobytes(), 1)


def published(data: dict[str, np.ndarray]) -> dict[str, bytes]:
    images = data["X"].reshape(-1, 28, 28)
    return {
        "train-images-idx3-ubyte.gz": idx(images[:60_000]),
        "train-labels-idx1-ubyte.gz": idx(data["y"][:60_000]),
        "t10k-images-idx3-ubyte.gz": idx(images[60_000:]),
        "t10k-labels-idx1-ubyte.gz": idx(data["y"][60_000:]),
    }


@pytest.mark.slow
def test_the_converter_gives_the_same_arrays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_converter("mnist", published, tmp_path, monkeypatch)


@pytest.mark.slow
def test_classes_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    check_classes(
        "mnist", [6903, 7877, 6990, 7141, 6824, 6313, 6876, 7293, 6825, 6958], monkeypatch
    )


def test_the_testbed() -> None:
    check_testbed("mnist", arms=10, paper=784, standard=784, rounds=10_000)
