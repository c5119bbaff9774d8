"""Restaurant: which place a user will like, from the user's profile."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float, Shaped

from feelgood.core.spec import Spec
from feelgood.data.datasets import load
from feelgood.testbeds.rows import Declared, Payoffs, as_registered, register_dataset
from feelgood.testbeds.tables import Kind, ordinal

#: Columns of a profile that are numbers; the others are categories, a missing value is one too.
NUMBERS = ("latitude", "longitude", "birth_year", "weight", "height")
LIKED = "2"


def liked_places(
    ratings: Shaped[np.ndarray, "ratings columns"], users: Shaped[np.ndarray, " users"]
) -> Float[np.ndarray, "users places"]:
    """1 where a user gave a place the best rating; 0 also where nobody knows.

    Places are in order of their numbers.
    """
    places = np.unique(ratings[:, 1].astype(np.int64))
    liked = ratings[ratings[:, 2] == LIKED]
    position = {user: i for i, user in enumerate(users.tolist())}
    out = np.zeros((len(users), len(places)))
    out[
        [position[user] for user in liked[:, 0].tolist()],
        np.searchsorted(places, liked[:, 1].astype(np.int64)),
    ] = 1.0
    return out


def restaurant(values: Mapping[str, Any]) -> Payoffs:
    """A round is a user: the profile is seen, the reward is 1 for a place rated 2."""
    data = load("restaurant")
    columns, kinds = [], []
    names = data["userprofile_columns"].tolist()
    for name, column in zip(names[1:], data["userprofile"].T[1:], strict=True):
        kind: Kind = "number" if name in NUMBERS else "category"
        columns.append(column.astype(np.float64) if kind == "number" else ordinal(column))
        kinds.append(kind)
    payoffs = liked_places(data["rating_final"], data["userprofile"][:, 0])
    return Payoffs.from_arrays(
        np.stack(columns, axis=1),
        payoffs,
        kinds=kinds,
        likelihood="bernoulli",
        **as_registered("restaurant"),
        **values,
    )


_PAPER, _STANDARD = (Spec(arms=130, dim=dim, rewards="bernoulli") for dim in (18, 63))
register_dataset(
    "restaurant",
    "Restaurants for a user; reward 1 for a place rated best.",
    restaurant,
    declared=Declared("restaurant", _PAPER, _STANDARD),
)
