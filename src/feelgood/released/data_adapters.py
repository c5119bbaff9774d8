"""The data sets as the released scripts read them (Neural/train_utils/dataset.py:187-247).

Rows with a missing value are dropped, the first rows are taken, and each is scaled to length 1.
Where a column is no number, **all** columns are replaced by the ranks of their values.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Int, Num

from feelgood.core.settings import Setting
from feelgood.data.catalogue import BANDIT_PROBLEMS, Arrays, Labelled, Problem
from feelgood.released.released_names import PREFIX
from feelgood.testbeds.classification import Classification
from feelgood.testbeds.contexts import ContextTable
from feelgood.testbeds.problems import register_testbed

#: Rows that the released settings take (`num_data`).
_FIRST = {"adult": 20_000, "covertype": 15_000, "magic": 19_000, "mnist": 50_000}
#: Columns of adult and of mushroom that have missing values.
_ADULT_MISSING = ("workclass", "occupation", "native-country")
_STALK_ROOT = 10
#: Users with ratings of the first 40 jokes; of these, 32 are the context.
_USERS, _JOKES, _SEEN = 14_936, 40, 32

_COLUMNS = Setting(
    "ranks", "all columns as ranks of their values, or as they are", choices=("ranks", "values")
)


def ranks(columns: Num[np.ndarray, "rows columns"]) -> Int[np.ndarray, "rows columns"]:
    """Each value as its place among the different values of its column."""
    places = [np.unique(column, return_inverse=True)[1] for column in columns.T]
    return np.stack(places, axis=1).astype(np.int32)


def _adult(data: Arrays, columns: str) -> Labelled:
    """The rows of the test file come first, as in OpenML's version 2."""
    rows = BANDIT_PROBLEMS["adult"].rows(data)
    assert isinstance(rows, Labelled)
    codes = dict(zip(data["cat_names"].tolist(), data["X_cat"].T, strict=True))
    whole = np.all([codes[name] > 0 for name in _ADULT_MISSING], axis=0)  # "?" has code 0
    order = np.argsort(1 - data["is_test"][whole], kind="stable")
    features, labels = rows.features[whole][order], rows.labels[whole][order]
    features = ranks(features) if columns == "ranks" else features
    return Labelled(features[: _FIRST["adult"]], labels[: _FIRST["adult"]], "number")


def _mushroom(data: Arrays, columns: str) -> Labelled:
    whole = data["X"][:, _STALK_ROOT] != "?"
    rows = BANDIT_PROBLEMS["mushroom"].rows({**data, "X": data["X"][whole], "y": data["y"][whole]})
    assert isinstance(rows, Labelled)
    features = ranks(rows.features) if columns == "ranks" else rows.features
    return Labelled(features, rows.labels, "number")


def _covertype(data: Arrays, columns: str) -> Labelled:
    """The flags are categories in OpenML's version 3, so all columns are ranks."""
    first = _FIRST["covertype"]
    features = ranks(data["X"])[:first] if columns == "ranks" else data["X"][:first]
    return Labelled(features, data["y"][:first], "number")


def _first_rows(name: str) -> Callable[..., Labelled]:
    def rows(data: Arrays) -> Labelled:
        first = _FIRST[name]
        return Labelled(data["X"][:first], data["y"][:first], "number")

    return rows


def _register(name: str, rows: Callable[..., Labelled], doc: str, **settings: Setting) -> None:
    own = dataclasses.replace(
        BANDIT_PROBLEMS[name],
        name=f"{PREFIX}{name}",
        doc=doc,
        rows=rows,
        settings=settings,
        dataset=name,
    )
    register_testbed(own, listed=False)


_register("adult", _adult, "Census income as released.", columns=_COLUMNS)
_register("mushroom", _mushroom, "Mushrooms as released, whole rows only.", columns=_COLUMNS)
_register("covertype", _covertype, "The first 15,000 places of forest.", columns=_COLUMNS)
_register("magic", _first_rows("magic"), "The first 19,000 rows of the telescope.")
_register("mnist", _first_rows("mnist"), "The first 50,000 digits.")


# ---- Jester ---------------------------------------------------------------------------------


def _jester(data: Arrays) -> Labelled:
    """All labels are 0, because contexts have two axes (dataset.py:175-178)."""
    ratings = data["ratings_all"][:, :_JOKES]
    whole = ratings[(ratings != 9900).all(axis=1)][:_USERS]
    return Labelled(whole[:, :_SEEN], np.zeros(len(whole), np.int64), "number")


class AllZeros(Classification):
    """Jokes as the released NeuralTS scripts see them: arm 0 is right in every round.

    The context is 32 ratings between 0 and 1, not scaled to length 1.
    """

    @classmethod
    def from_arrays(cls, features: Any, labels: Any, **options: Any) -> "AllZeros":
        rows, columns = features.shape
        table = ContextTable(
            values=jnp.asarray(features, jnp.int16),
            shift=jnp.full(columns, -1000.0),
            scale=jnp.full(columns, 1 / 2000),
            inverse_length=jnp.ones(rows),
        )
        return cls(
            table=table,
            labels=jnp.asarray(labels, jnp.int32),
            arms=options["arms"],
            horizon=options["horizon"],
            called=options["name"],
        )


register_testbed(
    Problem(
        name=f"{PREFIX}jester",
        doc="Jokes as released: arm 0 is right in every round.",
        rows=_jester,
        arms=8,
        dims=(_SEEN, _SEEN),
        dataset="jester",
    ),
    AllZeros,
    listed=False,
)
