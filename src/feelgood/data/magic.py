"""Magic: gamma rays or hadrons, from a telescope."""

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
from feelgood.data.formats import as_text, lines_of


def _convert(files: Files) -> Arrays:
    rows = [line.split(",") for line in lines_of(files["magic04.data"])]
    return {
        "X": np.asarray([row[:-1] for row in rows], np.float64),
        "y": np.asarray(["gh".index(row[-1]) for row in rows], np.uint8),
        "y_names": as_text(("g", "h")),
    }


def _rows(data: Arrays) -> Labelled:
    return Labelled(data["X"], data["y"], "number")


register_dataset(
    Dataset(
        name="magic",
        file="magic.npz",
        sha256="4638d5cf19c8b17d0e7aa09dbcbbef8cc4522eedef221c779bfd628ce546765c",
        digest="981a6100302459badaa2ef58ea043e754ff0917e35bd13384194f6f2d771f30c",
        arrays=("X", "y"),
        rows=19_020,
        doc="gamma telescope (Bock, UCI, 2007; CC BY 4.0)",
        originals=(
            Original(
                "magic04.data",
                (f"{UCI}/magic/magic04.data",),
                "e9314b7ebd4b4b59a3b3d65f7316663963777b16a46786877651dbbaa640b36a",
            ),
        ),
        convert=_convert,
    ),
    Problem("magic", "Gamma rays or hadrons in a telescope.", _rows, arms=2, dims=(10, 10)),
)
