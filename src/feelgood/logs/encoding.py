"""Columns of a log as the numbers of a context."""

from collections.abc import Sequence

import numpy as np

from feelgood.core.arrow import pa
from feelgood.core.errors import FeelgoodError
from feelgood.core.table_columns import Column, read_column

#: Texts with more different values are taken for names, which no agent can learn from.
MOST_LEVELS = 100


def encode_columns(
    table: pa.Table, names: Sequence[str], called: str, notes: list[str]
) -> np.ndarray | None:
    """Contexts `[rows, numbers]` from columns, or None where there is nothing in them.

    Numbers stay as they are, dates become days, a missing number the median. Texts and truth values
    become one column per value but the first in alphabetical order, as `obp` has it; a missing text
    is 0 in all of them. What is left out or filled is noted.
    """
    parts = [part for name in names for part in _encoded(name, table, called, notes)]
    return np.stack(parts, axis=1).astype(np.float32) if parts else None


def _encoded(name: str, table: pa.Table, called: str, notes: list[str]) -> list[np.ndarray]:
    column = read_column(table[name])
    if column.numbers is not None:
        return [_numbers(name, column.numbers, called, notes)]
    if column.texts is None:
        notes.append(f"Column '{name}' of {called} holds values of the kind {column.what}: unused.")
        return []
    return _levels(name, column, called, notes)


def _numbers(name: str, numbers: np.ndarray, called: str, notes: list[str]) -> np.ndarray:
    missing = np.isnan(numbers)
    if not missing.any():
        return numbers
    if missing.all():
        raise FeelgoodError(f"column '{name}' of {called} is empty: leave it out of the features.")
    middle = float(np.median(numbers[~missing]))
    notes.append(
        f"Column '{name}' of {called} lacks {missing.sum():,} numbers: filled with the median "
        f"{middle:g}."
    )
    return np.where(missing, middle, numbers)


def _levels(name: str, column: Column, called: str, notes: list[str]) -> list[np.ndarray]:
    texts = np.array([text if text is not None else "" for text in column.texts or ()], object)
    there = np.array([text is not None for text in column.texts or ()])
    levels = sorted(set(texts[there].tolist()))
    if len(levels) > MOST_LEVELS:
        notes.append(f"Column '{name}' of {called} has {len(levels):,} different texts: unused.")
        return []
    return [((texts == level) & there).astype(np.float64) for level in levels[1:]]


def one_column_each(values: np.ndarray) -> np.ndarray:
    """One column per distinct value."""
    return (np.unique(values)[None, :] == np.asarray(values)[:, None]).astype(np.float32)


def joined_contexts(*parts: np.ndarray | None) -> np.ndarray | None:
    """Contexts side by side; None where there are none."""
    given = [np.asarray(part, np.float32) for part in parts if part is not None and part.size]
    return np.concatenate(given, axis=1) if given else None
