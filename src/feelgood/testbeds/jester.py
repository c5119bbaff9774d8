"""Jester: which joke to tell, from ratings of other jokes."""

from collections.abc import Mapping
from typing import Any

from feelgood.core.spec import Spec
from feelgood.data.datasets import load
from feelgood.testbeds.rows import Declared, Payoffs, as_registered, register_dataset

#: Of the 40 jokes that everybody in the table has rated, in order of their numbers, the last ones
#: are the arms and the others the context.
ARMS = 8
#: Ratings are stored as hundredths of −10 … 10.
HUNDREDTHS_TO_UNIT = 1 / 1000


def jester(values: Mapping[str, Any]) -> Payoffs:
    """A round is a user: 32 ratings are seen, the arm's rating / 10 is the reward."""
    ratings = load("jester")["X40"]
    payoffs = ratings[:, -ARMS:] * HUNDREDTHS_TO_UNIT
    return Payoffs.from_arrays(ratings[:, :-ARMS], payoffs, **as_registered("jester"), **values)


_SPEC = Spec(arms=ARMS, dim=32)
register_dataset(
    "jester",
    "Jokes to tell, by a user's ratings of 32 others; reward −1 … 1.",
    jester,
    declared=Declared("jester", _SPEC, _SPEC),
)
