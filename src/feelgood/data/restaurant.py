"""Restaurant: which place a user will like, from the user's profile."""

import csv
import io

import numpy as np
from jaxtyping import Float, Shaped

from feelgood.data.catalogue import (
    UCI,
    Arrays,
    Dataset,
    Files,
    Kind,
    Original,
    Paid,
    Problem,
    register_dataset,
)
from feelgood.data.formats import as_text, ordinal, read_in_zip

#: Columns of a profile that are numbers; the others are categories, a missing value is one too.
_NUMBERS = ("latitude", "longitude", "birth_year", "weight", "height")
_LIKED = "2"


def _convert(files: Files) -> Arrays:
    out: dict[str, np.ndarray] = {}
    for table in ("rating_final", "userprofile"):
        text = read_in_zip(files["RCdata.zip"], f"{table}.csv").decode("utf-8-sig")
        header, *rows = (row for row in csv.reader(io.StringIO(text)) if row)
        out |= {table: as_text(rows), f"{table}_columns": as_text(header)}
    return out


def _liked_places(
    ratings: Shaped[np.ndarray, "ratings columns"], users: Shaped[np.ndarray, " users"]
) -> Float[np.ndarray, "users places"]:
    """1 where a user gave a place the best rating; 0 also where nobody knows.

    Places are in order of their numbers.
    """
    places = np.unique(ratings[:, 1].astype(np.int64))
    liked = ratings[ratings[:, 2] == _LIKED]
    position = {user: i for i, user in enumerate(users.tolist())}
    out = np.zeros((len(users), len(places)))
    out[
        [position[user] for user in liked[:, 0].tolist()],
        np.searchsorted(places, liked[:, 1].astype(np.int64)),
    ] = 1.0
    return out


def _rows(data: Arrays) -> Paid:
    """A round is a user: the profile is seen, the reward is 1 for a place rated 2."""
    columns, kinds = [], []
    names = data["userprofile_columns"].tolist()
    for name, column in zip(names[1:], data["userprofile"].T[1:], strict=True):
        kind: Kind = "number" if name in _NUMBERS else "category"
        columns.append(column.astype(np.float64) if kind == "number" else ordinal(column))
        kinds.append(kind)
    payoffs = _liked_places(data["rating_final"], data["userprofile"][:, 0])
    return Paid(np.stack(columns, axis=1), payoffs, kinds)


register_dataset(
    Dataset(
        name="restaurant",
        file="restaurant.npz",
        sha256="559cff6b1e1bcbcc8e664a950d9c7b108d0faf6601069b7789a5052d9dd276a6",
        digest="f0f15235872dd72320a0afad93127f4ca3389724a546c21afcf8baae425cf6b6",
        arrays=("rating_final", "rating_final_columns", "userprofile", "userprofile_columns"),
        rows=1_161,
        doc="ratings of restaurants (Vargas-Govea et al., UCI, 2012; CC BY 4.0)",
        originals=(Original("RCdata.zip", (f"{UCI}/00232/RCdata.zip",)),),
        convert=_convert,
    ),
    Problem(
        "restaurant",
        "Restaurants for a user; reward 1 for a place rated best.",
        _rows,
        arms=130,
        dims=(18, 63),
    ),
)
