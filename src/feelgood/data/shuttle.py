"""Shuttle: the state of a space shuttle's radiator."""

import io

import numpy as np

from feelgood.data.catalogue import (
    UCI,
    Arrays,
    Dataset,
    Files,
    Labelled,
    Original,
    Problem,
    register_dataset,
)
from feelgood.data.formats import uncompress


def _convert(files: Files) -> Arrays:
    train = io.BytesIO(uncompress(files["shuttle.trn.Z"].read_bytes()))
    parts = [np.loadtxt(part, np.int16, ndmin=2) for part in (train, files["shuttle.tst"])]
    table = np.concatenate(parts)
    return {
        "X": np.ascontiguousarray(table[:, :-1]),
        "y": (table[:, -1] - 1).astype(np.uint8),
        "is_test": np.repeat(np.array([0, 1], np.uint8), [len(part) for part in parts]),
    }


def _rows(data: Arrays) -> Labelled:
    return Labelled(data["X"], data["y"], "number")


register_dataset(
    Dataset(
        name="shuttle",
        file="shuttle.npz",
        sha256="b4ebcb217718e42b5f044d94841f4fb7bca57a0263992d5ceb9c02d6931f59fe",
        digest="354ae41cba4ec59bb6d5a5d0a93ab523b0d8557680534a02f59002463c39e5bf",
        arrays=("X", "y", "is_test"),
        rows=58_000,
        doc="Statlog shuttle (UCI; CC BY 4.0)",
        originals=(
            Original("shuttle.trn.Z", (f"{UCI}/statlog/shuttle/shuttle.trn.Z",)),
            Original(
                "shuttle.tst",
                (f"{UCI}/statlog/shuttle/shuttle.tst",),
                "f776934a628d9b94c482cb058a76ddaa63823e0f74aec065813c9dff3b89d661",
            ),
        ),
        convert=_convert,
    ),
    Problem("shuttle", "States of a space shuttle's radiator.", _rows, arms=7, dims=(9, 9)),
)
