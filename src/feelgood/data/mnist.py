"""MNIST: handwritten digits."""

import numpy as np

from feelgood.data.catalogue import (
    Arrays,
    Dataset,
    Files,
    Labelled,
    Original,
    Problem,
    register_dataset,
)
from feelgood.data.formats import read_idx


def _convert(files: Files) -> Arrays:
    images = [read_idx(files[f"{part}-images-idx3-ubyte.gz"]) for part in ("train", "t10k")]
    labels = [read_idx(files[f"{part}-labels-idx1-ubyte.gz"]) for part in ("train", "t10k")]
    pixels = np.concatenate(images)
    return {"X": pixels.reshape(len(pixels), -1), "y": np.concatenate(labels)}


def _rows(data: Arrays) -> Labelled:
    return Labelled(data["X"], data["y"], "pixel")


def _original(file: str, sha256: str) -> Original:
    homes = (
        "https://storage.googleapis.com/cvdf-datasets/mnist",
        "https://ossci-datasets.s3.amazonaws.com/mnist",
    )
    return Original(file, tuple(f"{home}/{file}" for home in homes), sha256, mebibytes=20)


register_dataset(
    Dataset(
        name="mnist",
        file="mnist_784.npz",
        sha256="54ddfe01bb1284d50e5473a31c590ba0e723949b611ce6e7604f2e9473754d8a",
        digest="96e7a305950b896bfc1dc9ae9d85fbfc49250af6d562fe9f01eb234cfcf74726",
        arrays=("X", "y"),
        rows=70_000,
        doc="handwritten digits (LeCun et al., 1998; CC BY-SA 3.0)",
        originals=(
            _original(
                "train-images-idx3-ubyte.gz",
                "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
            ),
            _original(
                "train-labels-idx1-ubyte.gz",
                "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
            ),
            _original(
                "t10k-images-idx3-ubyte.gz",
                "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
            ),
            _original(
                "t10k-labels-idx1-ubyte.gz",
                "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
            ),
        ),
        convert=_convert,
    ),
    Problem("mnist", "Handwritten digits of 28 × 28 pixels.", _rows, arms=10, dims=(784, 784)),
)
