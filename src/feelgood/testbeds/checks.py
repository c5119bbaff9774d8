"""Checks of a user's own data: the value as it is used, or one sentence that names the dataset."""

from collections.abc import Callable, Sequence
from typing import Any, get_args

import numpy as np
from jaxtyping import Int, Num

from feelgood.core.arguments import as_whole
from feelgood.core.errors import FeelgoodError, did_you_mean, shown
from feelgood.core.spec import Likelihood
from feelgood.data.catalogue import Kind

#: Called with one sentence that is no error; None: nobody is told.
Notify = Callable[[str], None] | None

MAX_ARMS = 100_000
MAX_HORIZON = 1_000_000_000
#: The most coordinates that one-hot categories may have together.
MAX_HOT = 10_000


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
    number = as_whole(value, low, high)
    if number is None:
        raise FeelgoodError(
            f"{name} has {what} = {shown(value)}: use a whole number from {low:,} to {high:,}."
        )
    return number


def check_testbed_name(name: Any) -> str:
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


def check_column_kinds(
    name: str, kinds: Any, columns: Num[np.ndarray, "rows columns"]
) -> list[Kind]:
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


def check_payoffs(
    name: str, payoffs: Any, rows: int, likelihood: Any
) -> Num[np.ndarray, "rows arms"]:
    """What every arm pays for each row: finite, and between 0 and 1 for Bernoulli rewards."""
    check_choice(name, "likelihood", likelihood, get_args(Likelihood))
    paid = as_array(name, "payoffs", payoffs)
    if paid.ndim != 2 or len(paid) != rows:
        raise FeelgoodError(
            f"{name} has {rows} rows and payoffs of shape {paid.shape}: give one per row and arm."
        )
    if not 2 <= paid.shape[1] <= MAX_ARMS:
        raise FeelgoodError(
            f"{name} has payoffs of {paid.shape[1]:,} arms: a bandit needs at least 2 arms "
            f"and can have at most {MAX_ARMS:,}."
        )
    check_finite(name, "payoff", "arm", paid)
    if likelihood == "bernoulli" and (paid.min() < 0 or paid.max() > 1):
        row, arm = np.argwhere((paid < 0) | (paid > 1))[0]
        raise FeelgoodError(
            f"{name} has the payoff {paid[row, arm]} in row {row}, arm {arm}: Bernoulli "
            "payoffs lie between 0 and 1, so use likelihood='squared'."
        )
    return paid


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
