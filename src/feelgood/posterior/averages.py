"""Measures that are averages over chains: mean, standard error, and a t-test of the law's value."""

from typing import Any

import numpy as np
from jaxtyping import Float

from feelgood.posterior.measure_rows import MeasureRow
from feelgood.stats.student import t_two_sided

#: Offsets below this are rounding errors of these computations themselves: all units are near 1.
NOTHING = 1e-12


def average_row(
    name: str,
    arm: int | None,
    by_chain: Float[np.ndarray, " chains"],
    expected: float,
    noise: float,
    rounding: float,
    variance: float = 0.0,
) -> MeasureRow:
    """The mean over chains with a t-test of its expected value.

    `variance` is the least that a chain's value has, where it is known.
    """
    chains = len(by_chain)
    value = float(by_chain.mean())
    error = float(np.sqrt(max(by_chain.var(ddof=1), variance) / chains)) * noise
    p_value = t_test(value - expected, error, chains, rounding)
    return MeasureRow(name, arm, value, expected, error, p_value)


def ratio_row(
    name: str,
    arm: int | None,
    by_chain: Float[np.ndarray, " chains"],
    noise: float,
    rounding: float,
) -> MeasureRow:
    """As `average_row`, tested on a logarithmic scale: there a mean of few squares is not skew."""
    row = average_row(name, arm, by_chain, 1.0, noise, rounding)
    if row.value <= 0.0:
        return row
    error = row.error / row.value
    p_value = t_test(np.log(row.value), error, len(by_chain), np.log1p(rounding))
    return row._replace(p_value=p_value)


def t_test(offset: float, error: float, chains: int, rounding: float = 0.0) -> float:
    """The p-value of an offset that is 0 for exact draws, up to an error of `rounding`."""
    offset = abs(offset) - rounding
    if offset <= NOTHING:
        return 1.0
    if error == 0.0:
        return 0.0
    return t_two_sided(offset / error, chains - 1)


def mean_squares(white: Float[np.ndarray, "chains draws blocks dim"]) -> np.ndarray:
    """Mean of z zᵀ of every chain and block."""
    return np.einsum("cnbi,cnbj->cbij", white, white, optimize=True) / white.shape[1]


def squares_along(white: Float[np.ndarray, "chains draws blocks dim"], side: int) -> np.ndarray:
    """Mean squares of every second chain along the widest (−1) or narrowest (0) direction.

    The direction comes from the other chains. So exact draws give 1 on average, and the spread over
    the measured chains is the error. The extreme eigenvalues of one sample covariance have neither.
    """
    squares = mean_squares(white)
    values, vectors = np.linalg.eigh(squares[::2].mean(axis=0))
    block = values[:, side].argmax() if side else values[:, side].argmin()
    direction = vectors[block, :, side]
    return direction @ squares[1::2, block] @ direction


def log_determinant_row(
    arm: int | None, white: Float[np.ndarray, "chains draws blocks dim"], noise: float
) -> MeasureRow:
    """The log-determinant of the covariance; bias and error by the jackknife over chains."""
    chains, count = white.shape[:2]
    total = float(chains * count)
    sums, squares = white.sum(axis=1), count * mean_squares(white)

    def value(total: float, mean: np.ndarray, square: np.ndarray) -> Any:
        covariance = square / total - mean[..., :, None] * mean[..., None, :]
        return np.linalg.slogdet(covariance)[1].sum(axis=-1)

    whole = value(total, sums.sum(axis=0) / total, squares.sum(axis=0))
    rest = total - count
    without = value(rest, (sums.sum(axis=0) - sums) / rest, squares.sum(axis=0) - squares)
    with np.errstate(invalid="ignore"):  # chains that never move have determinant 0
        corrected = float(chains * whole - (chains - 1) * without.mean())
        error = float(np.sqrt((chains - 1.0) / chains * np.sum((without - without.mean()) ** 2)))
    if not np.isfinite(corrected) or not np.isfinite(error):
        return MeasureRow("log_determinant", arm, -np.inf, 0.0, np.nan, 0.0)
    error *= noise
    p_value = t_test(corrected, error, chains)
    return MeasureRow("log_determinant", arm, corrected, 0.0, error, p_value)
