"""Covertype: which kind of forest grows in a place, from maps."""

import gzip
import io

import numpy as np

from feelgood.data.catalogue import (
    UCI,
    Arrays,
    Dataset,
    Files,
    Kind,
    Labelled,
    Original,
    Problem,
    register_dataset,
)
from feelgood.data.formats import read_at_most


def _convert(files: Files) -> Arrays:
    with gzip.open(files["covtype.data.gz"]) as stream:
        table = np.loadtxt(io.BytesIO(read_at_most(stream, 128)), np.int16, delimiter=",")
    return {"X": np.ascontiguousarray(table[:, :-1]), "y": (table[:, -1] - 1).astype(np.uint8)}


def _rows(data: Arrays) -> Labelled:
    kinds: list[Kind] = ["number" if i < 10 else "flag" for i in range(54)]
    return Labelled(data["X"], data["y"], kinds)


register_dataset(
    Dataset(
        name="covertype",
        file="covertype.npz",
        sha256="9b29aad8caab8b29f3179a7b533f7d443520bfe3460695122b369a81bd39b2ba",
        digest="08a5ac16a05fdd1683e3982b7f6b1b156ec4848159406ac22cfba783dfa41128",
        arrays=("X", "y"),
        rows=581_012,
        doc="forest cover (Blackard, UCI, 1998; CC BY 4.0)",
        originals=(
            Original(
                "covtype.data.gz",
                (
                    f"{UCI}/covtype/covtype.data.gz",
                    "https://ndownloader.figshare.com/files/5976039",
                ),
                "614360d0257557dd1792834a85a1cdebfadc3c4f30b011d56afee7ffb5b15771",
                mebibytes=32,
            ),
        ),
        convert=_convert,
    ),
    Problem(
        "covertype", "Kinds of forest from maps.", _rows, arms=7, dims=(54, 54), horizon=15_000
    ),
)
