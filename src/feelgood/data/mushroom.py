"""Mushroom: edible or poisonous, from what one sees."""

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
from feelgood.data.formats import as_text, lines_of, ordinal


def _convert(files: Files) -> Arrays:
    rows = [line.split(",") for line in lines_of(files["agaricus-lepiota.data"])]
    return {
        "X": as_text([row[1:] for row in rows]),
        "y": np.asarray(["ep".index(row[0]) for row in rows], np.uint8),
        "y_names": as_text(("e", "p")),
    }


def _rows(data: Arrays) -> Labelled:
    columns = np.stack([ordinal(column) for column in data["X"].T], axis=1).astype(np.uint8)
    return Labelled(columns, data["y"], "category")


register_dataset(
    Dataset(
        name="mushroom",
        file="mushroom.npz",
        sha256="613d76c82bb2845c68e71a6886ee3de7ae77273130994397177a4b90207caec1",
        digest="2b687d7af72d4e3665feef5d93489a2edc2ef4f6b77c1f6285264e4503cde59d",
        arrays=("X", "y"),
        rows=8_124,
        doc="agaricus-lepiota (UCI, 1981; CC BY 4.0)",
        originals=(
            Original(
                "agaricus-lepiota.data",
                (f"{UCI}/mushroom/agaricus-lepiota.data",),
                "e65d082030501a3ebcbcd7c9f7c71aa9d28fdfff463bf4cf4716a3fe13ac360e",
            ),
        ),
        convert=_convert,
    ),
    Problem("mushroom", "Edible or poisonous mushrooms.", _rows, arms=2, dims=(22, 117)),
)
