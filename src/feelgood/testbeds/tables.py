"""Datasets as contexts: columns encoded, rows scaled to length 1; and whether they can be."""

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, Literal, get_args

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Num, Shaped

from feelgood.core.errors import FeelgoodError, did_you_mean, shown
from feelgood.core.settings import Setting

#: What a column holds. Pixels are numbers that share one mean and one spread; a flag is 0 or 1.
Kind = Literal["number", "pixel", "category", "flag"]
Preprocess = Literal["paper", "standard"]
#: Called with one sentence that is no error; None: nobody is told.
Notify = Callable[[str], None] | None

PREPROCESS = Setting(
    "paper",
    "paper: categories as ordinal codes; standard: numbers standardised, categories one-hot",
    choices=("paper", "standard"),
    static=True,
)

#: Rows that are converted at a time where a whole dataset in float64 would be large.
PART_ROWS = 4096
MAX_ARMS = 100_000
MAX_ROUNDS = 1_000_000_000
#: The most coordinates that one-hot categories may have together.
MAX_HOT = 10_000
#: Half of a context's squared length is its constant, where there is one.
CONSTANT = math.sqrt(0.5)
#: Means of so many deviations, and sizes beyond these, lose their digits in float32.
FAR_MEAN = 2.0**12
SMALLEST, LARGEST = 1e-18, 1e18


class Table(eqx.Module):
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


def ordinal(values: Shaped[np.ndarray, " rows"]) -> Int[np.ndarray, " rows"]:
    """Categories as codes 0, 1, … in alphabetical order."""
    return np.unique(values, return_inverse=True)[1].reshape(values.shape)


def encode(
    name: str,
    columns: Num[np.ndarray, "..."],
    kinds: Any,
    preprocess: Preprocess,
    intercept: bool = False,
) -> Table:
    """Columns as they are in the dataset, categories as codes, to a table of contexts.

    `kinds` is what they hold, one kind for all or a list.

    - `"paper"`: every column is a number, categories are their codes.
    - `"standard"`: numbers have mean 0 and standard deviation 1 over the rows (pixels over all of
      them), categories become one-hot, flags stay 0 or 1. A constant column becomes 0.

    With `intercept`, every context ends with the same constant.
    """
    check_features(name, columns)
    each = check_kinds(name, kinds, columns)
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


def _table(values: np.ndarray, shift: np.ndarray, scale: np.ndarray, intercept: bool) -> Table:
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
    return Table(
        values=jnp.asarray(values if small else values.astype(np.float32)),
        shift=jnp.asarray(shift, jnp.float32),
        scale=jnp.asarray(scale, jnp.float32),
        inverse_length=jnp.asarray(inverse, jnp.float32),
        intercept=intercept,
    )


# ---- checks ---------------------------------------------------------------------------------


def check_choice(name: str, what: str, value: Any, choices: tuple[str, ...]) -> Any:
    """One of some words."""
    if not isinstance(value, str) or value not in choices:
        hint = f"use one of {', '.join(choices)}."
        if isinstance(value, str) and "did you mean" in (near := did_you_mean(value, choices)):
            hint = near
        raise FeelgoodError(f"{name} has {what} = {shown(value)}: {hint}")
    return value


def check_whole(name: str, what: str, value: Any, low: int, high: int) -> int:
    """A whole number in a range."""
    try:
        number = None if isinstance(value, (bool, np.bool)) else operator.index(value)
    except TypeError:
        number = None
    if number is None or not low <= number <= high:
        raise FeelgoodError(
            f"{name} has {what} = {shown(value)}: use a whole number from {low:,} to {high:,}."
        )
    return number


def check_name(name: Any) -> str:
    """What a testbed is called, for results; nothing is a name too."""
    if name is None:
        return ""
    if not isinstance(name, str) or not name.strip() or not name.isprintable():
        raise FeelgoodError(f"name = {shown(name)} is not allowed: use a text of one line.")
    return name


def check_bool(name: str, what: str, value: Any) -> bool:
    """True or False."""
    if not isinstance(value, (bool, np.bool)):
        raise FeelgoodError(f"{name} has {what} = {shown(value)}: use True or False.")
    return bool(value)


def as_array(name: str, what: str, values: Any) -> np.ndarray:
    """Numbers, or lists of them, as an array; anything else is refused."""
    if isinstance(values, np.ma.MaskedArray):
        raise FeelgoodError(
            f"{name} has {what} in a masked array: fill the masked values in, or drop such rows."
        )
    try:
        array = np.asarray(values)
    except Exception as error:
        raise FeelgoodError(
            f"{name} has {what} of type {type(values).__name__} that make no array: "
            "give an array, or lists of numbers of equal length."
        ) from error
    if array.dtype.kind not in "biuf":
        raise FeelgoodError(
            f"{name} has {what} of type {array.dtype}: give numbers, or use feelgood.from_frame "
            "for a table with text, dates or missing values."
        )
    if array.dtype.kind == "b":
        return array.astype(np.uint8)
    return array.astype(np.float64) if array.dtype.itemsize > 8 else array


def check_features(name: str, features: Num[np.ndarray, "..."]) -> None:
    """Refuse what is no table of finite numbers."""
    if features.ndim != 2 or not features.size:
        raise FeelgoodError(
            f"{name} has features of shape {features.shape}: give at least one row and one column."
        )
    check_finite(name, "feature", "column", features)


def check_finite(
    name: str, what: str, across: str, values: Num[np.ndarray, "rows columns"]
) -> None:
    """Refuse what is not finite in float32."""
    if not np.issubdtype(values.dtype, np.floating):
        return
    with np.errstate(over="ignore"):
        wrong = np.argwhere(~np.isfinite(values.astype(np.float32)))
    if len(wrong):
        row, column = wrong[0]
        raise FeelgoodError(
            f"{name} has the {what} {values[row, column]} in row {row}, {across} {column}: "
            f"{what}s must be finite in float32, so drop such rows or fill them in."
        )


def check_kinds(name: str, kinds: Any, columns: Num[np.ndarray, "rows columns"]) -> list[Kind]:
    """What each column holds; flags are 0 or 1, and categories few enough for one-hot."""
    count = columns.shape[1]
    try:
        each: list[Any] = [kinds] * count if isinstance(kinds, str) else list(kinds)
    except TypeError:
        each = [kinds] * count
    for kind in each:
        check_choice(name, "kinds", kind, get_args(Kind))
    if len(each) != count:
        raise FeelgoodError(
            f"{name} has {count} columns and {len(each)} kinds: give one kind per column."
        )
    hot = 0
    for i, kind in enumerate(each):
        if kind == "flag":
            wrong = np.flatnonzero((columns[:, i] != 0) & (columns[:, i] != 1))
            if len(wrong):
                raise FeelgoodError(
                    f"{name} has the flag {columns[wrong[0], i]} in row {wrong[0]}, column {i}: "
                    "flags are 0 or 1, so use the kind number or category."
                )
        elif kind == "category":
            hot += len(np.unique(columns[:, i]))
            if hot > MAX_HOT:
                raise FeelgoodError(
                    f"{name} has over {MAX_HOT:,} different values in its categories up to column "
                    f"{i}: use the kind number, or fewer values."
                )
    return each


def check_labels(name: str, labels: np.ndarray, rows: int, arms: Any) -> tuple[Any, int]:
    """Labels as whole numbers 0 … arms − 1, one per row; and the number of arms."""
    if labels.shape != (rows,):
        raise FeelgoodError(
            f"{name} has {rows} rows and labels of shape {labels.shape}: give one label per row."
        )
    if not np.issubdtype(labels.dtype, np.integer):
        raise FeelgoodError(
            f"{name} has labels of type {labels.dtype}: use whole numbers 0 to arms − 1."
        )
    top = int(labels.max()) + 1
    if arms is not None:
        top = check_whole(name, "arms", arms, 2, MAX_ARMS)
    limit = min(top, MAX_ARMS)
    wrong = np.flatnonzero((labels < 0) | (labels >= limit))
    if len(wrong):
        raise FeelgoodError(
            f"{name} has the label {labels[wrong[0]]} in row {wrong[0]}, outside its {limit:,} "
            f"arms: use labels 0 to {limit - 1:,}, or more arms, of which at most {MAX_ARMS:,} "
            "are possible."
        )
    if top < 2:
        raise FeelgoodError(
            f"{name} has the label 0 only, and a bandit needs at least 2 arms: "
            "give labels of two classes, or arms."
        )
    return labels.astype(np.int32), top


def check_arm_names(name: str, names: Any, arms: int) -> tuple[str, ...]:
    """One text per arm, all different; none at all is allowed too."""
    if names is None:
        return ()
    try:
        each = (names,) if isinstance(names, str) else tuple(names)
    except TypeError:
        each = (names,)
    if (
        len(each) != arms
        or len(set(map(str, each))) != arms
        or not all(isinstance(one, str) for one in each)
    ):
        raise FeelgoodError(
            f"{name} has {arms} arms and arm_names = {shown(names)}: give one text per arm, "
            "all different."
        )
    return each


def _listed(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers[:8])) + (", …" if len(numbers) > 8 else "")


def tell_constant_columns(
    name: str,
    columns: Num[np.ndarray, "rows columns"],
    kinds: Sequence[Kind] | Kind,
    intercept: bool,
    notify: Notify,
) -> None:
    """Name the columns that are the same in every row; the edges of pictures often are."""
    if notify is None or len(columns) == 1:
        return
    each = [kinds] * columns.shape[1] if isinstance(kinds, str) else kinds
    same = columns.min(axis=0) == columns.max(axis=0)
    found = [i for i, kind in enumerate(each) if same[i] and kind != "pixel"]
    if found:
        where = f"columns {_listed(found)}" if found[1:] else f"column {found[0]}"
        remedy = "an intercept is there already" if intercept else "use intercept=True"
        notify(
            f"{name} has the same value in all rows of {where}: nothing can be learned from it "
            f"(for a constant, {remedy})."
        )


def tell_arms_without_rows(
    name: str, labels: Int[np.ndarray, " rows"], arms: int, notify: Notify
) -> None:
    """Name the arms that never pay."""
    found = np.flatnonzero(np.bincount(labels, minlength=arms) == 0).tolist()
    if found and notify is not None:
        notify(
            f"{name} has no row with the label {_listed(found)}: "
            f"{'these arms never pay' if found[1:] else 'this arm never pays'}."
        )
