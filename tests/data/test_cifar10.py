"""CIFAR-10: its published file and its testbed."""

import io
import tarfile
from pathlib import Path

import numpy as np
import pytest
from real_data import check_classes, check_converter, check_testbed


def published(data: dict[str, np.ndarray]) -> dict[str, bytes]:
    batch = np.c_[data["y"], data["X"]].tobytes()
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz", compresslevel=1) as archive:
        for member, content in (
            ("batches.meta.txt", b"airplane\n"),
            ("data_batch_1.bin", batch),
        ):
            info = tarfile.TarInfo(f"cifar-10-batches-bin/{member}")
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return {"cifar-10-binary.tar.gz": out.getvalue()}


@pytest.mark.slow
def test_the_converter_gives_the_same_arrays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_converter("cifar10", published, tmp_path, monkeypatch)


@pytest.mark.slow
def test_classes_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    check_classes("cifar10", [1005, 974, 1032, 1016, 999, 937, 1030, 1001, 1025, 981], monkeypatch)


def test_the_testbed() -> None:
    check_testbed("cifar10", arms=10, paper=3072, standard=3072, rounds=25_000)
