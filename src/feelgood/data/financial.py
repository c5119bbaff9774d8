"""Financial: which of eight portfolios to hold, from the day's price changes of 21 stocks."""

import numpy as np
from jaxtyping import Float

from feelgood.core.settings import Setting
from feelgood.data.catalogue import (
    Arrays,
    Dataset,
    Files,
    Original,
    Paid,
    Problem,
    register_dataset,
)
from feelgood.data.formats import as_text, lines_of

_PORTFOLIOS = 8


def _convert(files: Files) -> Arrays:
    lines = lines_of(files["raw_stock_contexts"])
    header, *rows = (line.replace(",", " ").split() for line in lines)
    return {
        "X": np.asarray(rows, np.float64),
        "header_as_published": as_text([name.strip('"') for name in header]),
    }


def portfolio_weights(stocks: int, seed: int) -> Float[np.ndarray, "stocks portfolios"]:
    """Random portfolios: weights uniform in −1 … 1, then scaled so that each has length 1.

    Drawn by numpy's `RandomState`, whose numbers never change between versions.
    """
    weights = np.random.RandomState(seed).uniform(-1.0, 1.0, (stocks, _PORTFOLIOS))
    return weights / np.linalg.norm(weights, axis=0)


def _rows(data: Arrays, portfolios: int) -> Paid:
    """A round is a day: the stocks' changes are seen, the portfolio's return is the reward.

    A stock's return is its change from open to close in units of its own standard deviation, so
    that the dearest stock does not decide everything.
    """
    changes = data["X"]
    returns = changes / changes.std(axis=0)
    return Paid(changes, returns @ portfolio_weights(changes.shape[1], portfolios), "number")


register_dataset(
    Dataset(
        name="financial",
        file="financial.npz",
        sha256="f26dd9d59dcf69e01b165c90961a6e8f1455c1b71c29dad2944e30f900b1060f",
        digest="849448f9bf238d9aff56f712b4f1dc18805c843db6fbd1a8a6e149cb4f1d1559",
        arrays=("X", "header_as_published"),
        rows=3_713,
        doc="daily price changes of 21 stocks (Riquelme et al., ICLR 2018)",
        originals=(
            Original(
                "raw_stock_contexts",
                ("https://storage.googleapis.com/bandits_datasets/raw_stock_contexts",),
            ),
        ),
        convert=_convert,
    ),
    Problem(
        "financial",
        "Eight fixed portfolios of 21 stocks; reward the day's return.",
        _rows,
        arms=_PORTFOLIOS,
        dims=(21, 21),
        rewards="squared",
        settings={
            "portfolios": Setting(
                0, "seed of the portfolios' weights", low=0, high=2**32 - 1, static=True
            )
        },
    ),
)
