"""Financial: which of eight portfolios to hold, from the day's price changes of 21 stocks."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float

from feelgood.core.settings import Setting
from feelgood.core.spec import Spec
from feelgood.data.datasets import load
from feelgood.testbeds.rows import Declared, Payoffs, as_registered, register_dataset

PORTFOLIOS = 8


def portfolio_weights(stocks: int, seed: int) -> Float[np.ndarray, "stocks portfolios"]:
    """Portfolios as random combinations of length 1, weights uniform in −1 … 1 before that.

    Drawn by numpy's `RandomState`, whose numbers never change between versions.
    """
    weights = np.random.RandomState(seed).uniform(-1.0, 1.0, (stocks, PORTFOLIOS))
    return weights / np.linalg.norm(weights, axis=0)


def financial(values: Mapping[str, Any]) -> Payoffs:
    """A round is a day: the stocks' changes are seen, the portfolio's return is the reward.

    A stock's return is its change from open to close in units of its own standard deviation, so
    that the dearest stock does not decide everything.
    """
    values = dict(values)
    changes = load("financial")["X"]
    returns = changes / changes.std(axis=0)
    payoffs = returns @ portfolio_weights(changes.shape[1], values.pop("portfolios"))
    return Payoffs.from_arrays(changes, payoffs, **as_registered("financial"), **values)


_SPEC = Spec(arms=PORTFOLIOS, dim=21)
register_dataset(
    "financial",
    "Eight fixed portfolios of 21 stocks; reward the day's return.",
    financial,
    declared=Declared("financial", _SPEC, _SPEC),
    portfolios=Setting(0, "seed of the portfolios' weights", low=0, high=2**32 - 1, static=True),
)
