"""Jester: which joke to tell, from ratings of other jokes."""

import numpy as np

from feelgood.data.catalogue import (
    Arrays,
    Dataset,
    Files,
    Original,
    Paid,
    Problem,
    register_dataset,
)
from feelgood.data.formats import lines_of

#: Of the 40 jokes that everybody in the table has rated, in order of their numbers, the last ones
#: are the arms and the others the context.
_ARMS = 8
#: Ratings are stored as hundredths of −10 … 10.
_HUNDREDTHS_TO_UNIT = 1 / 1000


def _convert(files: Files) -> Arrays:
    rows = [line.replace(";", ",").split(",") for line in lines_of(files["jester-data-1.csv"])]
    table = np.asarray(rows, np.float64)
    ratings = np.rint(100 * table[:, 1:]).astype(np.int16)
    rated = ratings != 9900
    most_rated = np.sort(np.argsort(-rated.sum(axis=0), kind="stable")[:40])
    users = np.flatnonzero(rated[:, most_rated].all(axis=1))
    return {
        "ratings_all": ratings,
        "n_rated": table[:, 0].astype(np.int16),
        "X40": np.ascontiguousarray(ratings[np.ix_(users, most_rated)]),
        "joke_ids40": (most_rated + 1).astype(np.int16),
        "user_rows40": users.astype(np.int32),
    }


def _rows(data: Arrays) -> Paid:
    """A round is a user: 32 ratings are seen, the arm's rating / 10 is the reward."""
    ratings = data["X40"]
    return Paid(ratings[:, :-_ARMS], ratings[:, -_ARMS:] * _HUNDREDTHS_TO_UNIT, "number")


register_dataset(
    Dataset(
        name="jester",
        file="jester.npz",
        sha256="ef8573dfab31f8d4dcbd5b4fee9f224d9b2f8a7ef1fd50afae1bd7a7eed67f5c",
        digest="fe52588ee1ce48dc3e8e3ac44e9a57e62edd02277eb235d218d854e99eab5768",
        arrays=("X40", "joke_ids40", "user_rows40", "ratings_all", "n_rated"),
        rows=19_181,
        doc="ratings of jokes (Goldberg et al., 2001; for research, with citation)",
        originals=(Original("jester-data-1.csv", (), None, mebibytes=64),),
        convert=_convert,
        by_hand="download https://eigentaste.berkeley.edu/dataset/jester_dataset_1_1.zip, "
        "save the workbook in it as jester-data-1.csv",
    ),
    Problem(
        "jester",
        "Jokes to tell, by a user's ratings of 32 others; reward −1 … 1.",
        _rows,
        arms=_ARMS,
        dims=(32, 32),
        rewards="squared",
    ),
)
