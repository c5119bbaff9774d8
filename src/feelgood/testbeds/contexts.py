"""Datasets as contexts: columns encoded, rows scaled to length 1."""

import math
from typing import Any, Literal

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Num

from feelgood.core.settings import Setting
from feelgood.testbeds.checks import check_column_kinds, check_features

Preprocess = Literal["paper", "standard"]

PREPROCESS = Setting(
    "paper",
    "paper: categories as ordinal codes; standard: numbers standardised, categories one-hot",
    choices=("paper", "standard"),
    static=True,
)

#: Rows that are converted at a time where a whole dataset in float64 would be large.
PART_ROWS = 4096
#: Half of a context's squared length is its constant, where there is one.
CONSTANT = math.sqrt(0.5)
#: Means of so many deviations, and sizes beyond these, lose their digits in float32.
FAR_MEAN = 2.0**12
SMALLEST, LARGEST = 1e-18, 1e18


class ContextTable(eqx.Module):
    """Rows of a dataset, stored in few bytes and made into a context when they are drawn.

    The context is (row − shift) · scale, divided by its length. With an intercept it ends with one
    constant more, √½, and the rest has length √½, so that the whole has length 1. The lengths
    are computed once, on the host: sums in a compiled program may round differently with the
    number of seeds.
    """

    values: Num[Array, "rows columns"]
    shift: Float[Array, " columns"]
    scale: Float[Array, " columns"]
    inverse_length: Float[Array, " rows"]
    intercept: bool = eqx.field(static=True, default=False)

    @property
    def rows(self) -> int:
        return self.values.shape[0]

    @property
    def dim(self) -> int:
        return self.values.shape[1] + self.intercept

    def context(self, row: Int[Array, ""]) -> Float[Array, " dim"]:
        """One row as a context of length 1; a row of zeros stays one, but for the intercept."""
        x = (self.values[row].astype(jnp.float32) - self.shift) * self.scale
        x = x * self.inverse_length[row]
        return jnp.append(x, jnp.float32(CONSTANT)) if self.intercept else x


def encode(
    name: str,
    columns: Num[np.ndarray, "..."],
    kinds: Any,
    preprocess: Preprocess,
    intercept: bool = False,
) -> ContextTable:
    """Columns as they are in the dataset, categories as codes, to a table of contexts.

    `kinds` is what they hold, one kind for all or a list.

    - `"paper"`: every column is a number, categories are their codes.
    - `"standard"`: numbers have mean 0 and standard deviation 1 over the rows (pixels over all of
      them), categories become one-hot, flags stay 0 or 1. A constant column becomes 0.

    With `intercept`, every context ends with the same constant.
    """
    check_features(name, columns)
    each = check_column_kinds(name, kinds, columns)
    if preprocess == "paper":
        zeros = np.zeros(columns.shape[1], np.float32)
        return _table(columns, zeros, zeros + 1, intercept)
    blocks: list[np.ndarray] = []
    shift: list[float] = []
    scale: list[float] = []
    are_pixels = np.array([kind == "pixel" for kind in each])
    of_pixels = (0.0, 1.0)
    if are_pixels.any():
        of_pixels = _mean_and_scale(columns if are_pixels.all() else columns[:, are_pixels])
    for column, kind in zip(columns.T, each, strict=True):
        if kind == "category":
            hot = column[:, None] == np.unique(column)
            blocks.append(hot.astype(np.float32))
            shift += [0.0] * hot.shape[1]
            scale += [1.0] * hot.shape[1]
            continue
        mean, factor = 0.0, 1.0
        if kind == "number":
            mean, factor = _mean_and_scale(column)
        elif kind == "pixel":
            mean, factor = of_pixels
        blocks.append(column[:, None])
        shift.append(mean)
        scale.append(factor)
    values = columns if "category" not in each else np.concatenate(blocks, axis=1)
    return _table(values, np.asarray(shift), np.asarray(scale), intercept)


def _mean_and_scale(values: Num[np.ndarray, "..."]) -> tuple[float, float]:
    """Mean and 1/deviation of all numbers, in float64 but for a part of the rows at a time."""
    if values.min() == values.max():
        return float(values.min()), 1.0
    mean = float(values.mean(dtype=np.float64))
    parts = (values[i : i + PART_ROWS] for i in range(0, len(values), PART_ROWS))
    squares = sum(float(np.square(part.astype(np.float64) - mean).sum()) for part in parts)
    deviation = math.sqrt(squares / values.size)
    return mean, 1.0 / deviation if deviation > 0 else 1.0


def _table(
    values: np.ndarray, shift: np.ndarray, scale: np.ndarray, intercept: bool
) -> ContextTable:
    small = values.dtype in (np.uint8, np.int16)

    def scaled(start: int) -> np.ndarray:
        return (values[start : start + PART_ROWS].astype(np.float64) - shift) * scale

    starts = range(0, len(values), PART_ROWS)
    lengths = np.concatenate([np.linalg.norm(scaled(start), axis=1) for start in starts])
    inverse = (CONSTANT if intercept else 1.0) / np.where(lengths > 0, lengths, 1.0)
    sizes = np.concatenate([scale, lengths[lengths > 0]])
    if (
        np.abs(shift * scale) > FAR_MEAN
    ).any() or not SMALLEST < sizes.min() <= sizes.max() < LARGEST:
        # Float32 would lose what tells the rows apart: the finished contexts are stored.
        values = np.concatenate([scaled(i) * inverse[i : i + PART_ROWS, None] for i in starts])
        small, shift, scale, inverse = False, 0 * shift, 0 * scale + 1, np.ones(len(values))
    return ContextTable(
        values=jnp.asarray(values if small else values.astype(np.float32)),
        shift=jnp.asarray(shift, jnp.float32),
        scale=jnp.asarray(scale, jnp.float32),
        inverse_length=jnp.asarray(inverse, jnp.float32),
        intercept=intercept,
    )
