"""Datasets as contexts: columns encoded, rows scaled to length 1."""

import math
from collections.abc import Sequence
from typing import Literal

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Num, Shaped

from feelgood.errors import FeelgoodError
from feelgood.settings import Setting

#: What a column holds. Pixels are numbers that share one mean and one spread; a flag is 0 or 1.
Kind = Literal["number", "pixel", "category", "flag"]
Preprocess = Literal["paper", "standard"]

PREPROCESS = Setting(
    "paper",
    "paper: categories as ordinal codes; standard: numbers standardised, categories one-hot",
    choices=("paper", "standard"),
    static=True,
)

#: Rows that are converted at a time where a whole dataset in float64 would be large.
PART_ROWS = 4096


class Table(eqx.Module):
    """Rows of a dataset, stored in few bytes and made into a context when they are drawn.

    The context is (row − shift) · scale, divided by its length. The lengths are computed once, on
    the host: sums in a compiled program may round differently with the number of seeds.
    """

    values: Num[Array, "rows dim"]
    shift: Float[Array, " dim"]
    scale: Float[Array, " dim"]
    inverse_length: Float[Array, " rows"]

    @property
    def rows(self) -> int:
        return self.values.shape[0]

    @property
    def dim(self) -> int:
        return self.values.shape[1]

    def context(self, row: Int[Array, ""]) -> Float[Array, " dim"]:
        """One row as a context of length 1; a row of zeros stays one."""
        x = (self.values[row].astype(jnp.float32) - self.shift) * self.scale
        return x * self.inverse_length[row]


def ordinal(values: Shaped[np.ndarray, " rows"]) -> Int[np.ndarray, " rows"]:
    """Categories as codes 0, 1, … in alphabetical order."""
    return np.unique(values, return_inverse=True)[1].reshape(values.shape)


def encode(
    name: str,
    columns: Num[np.ndarray, "..."],
    kinds: Sequence[Kind] | Kind,
    preprocess: Preprocess,
) -> Table:
    """Columns as they are in the dataset, categories as codes, to a table of contexts.

    - `"paper"`: every column is a number, categories are their codes.
    - `"standard"`: numbers have mean 0 and standard deviation 1 over the rows (pixels over all of
      them), categories become one-hot, flags stay 0 or 1. A constant column becomes 0.
    """
    check_features(name, columns)
    each = [kinds] * columns.shape[1] if isinstance(kinds, str) else list(kinds)
    if len(each) != columns.shape[1]:
        raise FeelgoodError(
            f"{name} has {columns.shape[1]} columns and {len(each)} kinds: give one kind a column."
        )
    if preprocess == "paper":
        zeros = np.zeros(columns.shape[1], np.float32)
        return _table(columns, zeros, zeros + 1)
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
    return _table(values, np.asarray(shift), np.asarray(scale))


def _mean_and_scale(values: Num[np.ndarray, "..."]) -> tuple[float, float]:
    """Mean and 1/deviation of all numbers, in float64 but for a part of the rows at a time."""
    mean = float(values.mean(dtype=np.float64))
    parts = (values[i : i + PART_ROWS] for i in range(0, len(values), PART_ROWS))
    deviation = math.sqrt(sum(float(np.square(part - mean).sum()) for part in parts) / values.size)
    return mean, 1.0 / deviation if deviation > 0 else 1.0


def _table(values: np.ndarray, shift: np.ndarray, scale: np.ndarray) -> Table:
    small = values.dtype in (np.uint8, np.int16)
    lengths = np.concatenate(
        [
            np.linalg.norm((values[i : i + PART_ROWS].astype(np.float64) - shift) * scale, axis=1)
            for i in range(0, len(values), PART_ROWS)
        ]
    )
    return Table(
        values=jnp.asarray(values if small else values.astype(np.float32)),
        shift=jnp.asarray(shift, jnp.float32),
        scale=jnp.asarray(scale, jnp.float32),
        inverse_length=jnp.asarray(1.0 / np.where(lengths > 0, lengths, 1.0), jnp.float32),
    )


def check_features(name: str, features: Num[np.ndarray, "..."]) -> None:
    """Refuse what is no table of finite numbers."""
    if features.ndim != 2 or not features.size:
        raise FeelgoodError(
            f"{name} has features of shape {features.shape}: give at least one row and one column."
        )
    if not np.issubdtype(features.dtype, np.floating):
        return
    with np.errstate(over="ignore"):
        wrong = np.argwhere(~np.isfinite(features.astype(np.float32)))
    if len(wrong):
        row, column = wrong[0]
        raise FeelgoodError(
            f"{name} has the feature {features[row, column]} in row {row}, column {column}: "
            "features must be finite in float32, so drop such rows or fill them in."
        )


def check_labels(
    name: str, labels: Shaped[np.ndarray, "..."], rows: int, arms: int | None
) -> Int[np.ndarray, " rows"]:
    """Labels as whole numbers 0 … arms − 1, one a row."""
    if labels.shape != (rows,):
        raise FeelgoodError(
            f"{name} has {rows} rows and labels of shape {labels.shape}: give one label a row."
        )
    if not np.issubdtype(labels.dtype, np.integer):
        raise FeelgoodError(
            f"{name} has labels of type {labels.dtype}: use whole numbers 0 to arms − 1."
        )
    top = int(labels.max()) + 1 if arms is None else arms
    wrong = np.flatnonzero((labels < 0) | (labels >= top))
    if len(wrong):
        raise FeelgoodError(
            f"{name} has the label {labels[wrong[0]]} in row {wrong[0]}, outside its {top} arms: "
            f"use labels 0 to {top - 1}, or more arms."
        )
    return labels.astype(np.int32)
