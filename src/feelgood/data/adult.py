"""Adult: who earns more than 50,000 dollars, from the census."""

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
from feelgood.data.formats import as_text, lines_of

_NUMBERS = ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week")
_COLUMNS = (
    "age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation",
    "relationship", "race", "sex", "capital-gain", "capital-loss", "hours-per-week",
    "native-country",
)  # fmt: skip


def _convert(files: Files) -> Arrays:
    train, test = lines_of(files["adult.data"]), lines_of(files["adult.test"])[1:]
    rows = [line.rstrip(".").split(", ") for line in (*train, *test)]
    columns = dict(zip((*_COLUMNS, "income"), zip(*rows, strict=True), strict=True))
    texts = [name for name in _COLUMNS if name not in _NUMBERS]
    coded = {name: np.unique(as_text(columns[name]), return_inverse=True) for name in texts}
    incomes, labels = np.unique(as_text(columns["income"]), return_inverse=True)
    return {
        "X_num": np.stack([np.asarray(columns[n], np.int32) for n in _NUMBERS], axis=1),
        "num_names": as_text(_NUMBERS),
        "X_cat": np.stack([codes for _, codes in coded.values()], axis=1).astype(np.uint8),
        "cat_names": as_text(texts),
        "column_order": as_text(_COLUMNS),
        **{f"categories_{name}": names for name, (names, _) in coded.items()},
        "y": labels.astype(np.uint8),
        "y_names": incomes,
        "is_test": np.repeat(np.array([0, 1], np.uint8), [len(train), len(test)]),
    }


def _rows(data: Arrays) -> Labelled:
    numbers = dict(zip(data["num_names"].tolist(), data["X_num"].T, strict=True))
    codes = dict(zip(data["cat_names"].tolist(), data["X_cat"].T, strict=True))
    order = data["column_order"].tolist()
    columns = np.stack([(numbers | codes)[name] for name in order], axis=1)
    kinds: dict[str, Kind] = dict.fromkeys(numbers, "number") | dict.fromkeys(codes, "category")
    return Labelled(columns, data["y"], [kinds[name] for name in order])


register_dataset(
    Dataset(
        name="adult",
        file="adult.npz",
        sha256="d01a8f50b42a758fe94c5623f4b638eeec3995959ca186ea59608cb61a83960b",
        digest="0b6acc7d1c7187d2ed79331337e79bc1526b63ed1a3ac976da179d0c9fcd3696",
        arrays=("X_num", "X_cat", "num_names", "cat_names", "column_order", "y", "is_test"),
        rows=48_842,
        doc="census income (Becker and Kohavi, UCI, 1996; CC BY 4.0)",
        originals=(
            Original(
                "adult.data",
                (f"{UCI}/adult/adult.data",),
                "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
                mebibytes=8,
            ),
            Original(
                "adult.test",
                (f"{UCI}/adult/adult.test",),
                "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
            ),
        ),
        convert=_convert,
    ),
    Problem("adult", "Census income above 50,000 dollars or not.", _rows, arms=2, dims=(14, 108)),
)
