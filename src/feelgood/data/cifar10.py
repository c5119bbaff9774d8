"""CIFAR-10: small photographs of ten kinds of things."""

import numpy as np

from feelgood.data.catalogue import (
    MEBIBYTE,
    Arrays,
    Dataset,
    Files,
    Labelled,
    Original,
    Problem,
    register_dataset,
)


def _convert(files: Files) -> Arrays:
    """From the binary version: the Python version holds pickles, which may run any code."""
    import tarfile

    wanted = "data_batch_1.bin"
    with tarfile.open(files["cifar-10-binary.tar.gz"]) as archive:
        for member in archive:
            if member.size > 64 * MEBIBYTE:  # before it is unpacked, if only to come past it
                raise ValueError(f"{member.name} in it has more than 64 MiB")
            if member.isfile() and member.name.rpartition("/")[2] == wanted:
                stream = archive.extractfile(member)
                assert stream is not None
                batch = np.frombuffer(stream.read(), np.uint8).reshape(-1, 3073)
                return {"X": np.ascontiguousarray(batch[:, 1:]), "y": batch[:, 0].copy()}
    raise ValueError(f"{wanted} is not in it")


def _rows(data: Arrays) -> Labelled:
    return Labelled(data["X"], data["y"], "pixel")


register_dataset(
    Dataset(
        name="cifar10",
        file="cifar10.npz",
        sha256="12bf910765bf1eb757d2718fbe833254e535e4a510782545a566c2b6546b9bff",
        digest="a0b5b37bf9725455617e413e7421c0ab2d4d2c4a604b4a6e914eb2de1baa5732",
        arrays=("X", "y"),
        rows=10_000,
        doc="small photographs, the first training batch (Krizhevsky, 2009)",
        originals=(
            Original(
                "cifar-10-binary.tar.gz",
                ("https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",),
                "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
                mebibytes=400,
            ),
        ),
        convert=_convert,
    ),
    Problem(
        "cifar10",
        "Photographs of ten kinds of things.",
        _rows,
        arms=10,
        dims=(3072, 3072),
        horizon=25_000,
    ),
)
