"""Columns of a frame as numbers that an agent can learn from. Every guess is told."""

from collections.abc import Callable
from itertools import compress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from feelgood.core.errors import FeelgoodError
from feelgood.data.catalogue import Kind

if TYPE_CHECKING:
    import pyarrow as pa

Tell = Callable[[str], None]

#: Text with more different values than `MANY` is taken for names or notes: no agent can learn from
#: them. So is text with more than half as many as there are rows, if these are at least `FEW_ROWS`.
#: A label like that is not taken for a class.
MANY = 100
FEW_ROWS = 20
#: Whole numbers with so few different values could be categories; what they are is told.
FEW_NUMBERS = 10
MISSING = "missing"
DAY = 86_400e6  # microseconds


class EncodedColumn(NamedTuple):
    """One column of contexts before it is scaled."""

    values: np.ndarray
    kind: Kind


class Column(NamedTuple):
    """A column of a frame: numbers with NaN, or texts with None, where nothing is known."""

    what: str
    numbers: np.ndarray | None = None
    texts: list[str | None] | None = None

    def of(self, rows: np.ndarray) -> "Column":
        """The same column in some rows."""
        numbers = None if self.numbers is None else self.numbers[rows]
        texts = None if self.texts is None else list(compress(self.texts, rows))
        return Column(self.what, numbers, texts)


def read_column(column: "pa.ChunkedArray") -> Column:
    """A column as numbers or as texts; neither where it holds something else."""
    import pyarrow as pa

    kind, types = column.type, pa.types
    words = {
        "categories": types.is_dictionary(kind),
        "truth values": types.is_boolean(kind),
        "strings": str(kind) in ("string", "large_string", "string_view"),
        "nothing": types.is_null(kind),
    }
    for what, true in words.items():
        if true:
            texts = [None if value is None else text_of(value) for value in column.to_pylist()]
            return Column(what, texts=texts)
    what, unit = "dates or times", DAY
    if types.is_timestamp(kind):
        column = column.cast(pa.timestamp("us", kind.tz), safe=False).cast(pa.int64())
    elif types.is_date(kind):
        column = column.cast(pa.timestamp("us"), safe=False).cast(pa.int64())
    elif types.is_time(kind):
        column = column.cast(pa.time64("us"), safe=False).cast(pa.int64())
    elif types.is_duration(kind):
        column = column.cast(pa.duration("us"), safe=False).cast(pa.int64())
    elif types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        what, unit = "numbers", 1.0
    else:
        return Column(str(kind))
    numbers = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return Column(what, numbers=numbers / unit)


def text_of(value: Any) -> str:
    """A value as people write it: 3, not 3.0."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def missing_in(read: Column) -> Any:
    """Where nothing is known."""
    if read.numbers is not None:
        return np.isnan(read.numbers)
    return np.array([text is None for text in read.texts]) if read.texts else np.False_


def counted(where: np.ndarray, noun: str) -> str:
    """So many of something."""
    number = int(where.sum())
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def encode_column(
    called: str,
    column: str,
    read: Column,
    keep: np.ndarray,
    preprocess: str,
    told: bool,
    tell: Tell,
) -> list[EncodedColumn]:
    """A column as one or two columns of numbers; none if it is left out."""
    if not told and read.what == "numbers" and read.numbers is not None and _counts(read.numbers):
        tell(f"Column '{column}' numbers the rows: left out (name it in features to keep it).")
        return []
    read = read.of(keep)
    if read.numbers is None and read.texts is None:
        tell(f"Column '{column}' holds values of the kind {read.what}: left out.")
        return []
    missing = missing_in(read)
    if missing.all():
        tell(f"Column '{column}' is empty: left out.")
        return []
    if read.texts is not None:
        return _encode_texts(column, read, preprocess, told, tell)
    assert read.numbers is not None
    return _encode_numbers(called, column, read, missing, tell)


def _encode_texts(
    column: str, read: Column, preprocess: str, told: bool, tell: Tell
) -> list[EncodedColumn]:
    assert read.texts is not None
    texts = [MISSING if text is None else text for text in read.texts]
    levels, codes = np.unique(np.array(texts, dtype=object), return_inverse=True)
    what = f"{len(levels):,} different {read.what}"
    if len(levels) == 1:
        tell(f"Column '{column}' has the same value in all rows: left out.")
        return []
    if not told and _too_many(len(levels), len(texts)):
        tell(
            f"Column '{column}' has {what} in {len(texts):,} rows: left out (name it in features "
            "to keep it)."
        )
        return []
    how = "one-hot" if preprocess == "standard" else "as codes in alphabetical order"
    gaps = missing_in(read)
    own = f"; {MISSING} ({counted(gaps, 'row')}) is one of them" if gaps.any() else ""
    tell(f"Column '{column}' has {what}: {how}{own}.")
    return [EncodedColumn(codes.astype(np.float64), "category")]


def _encode_numbers(
    called: str, column: str, read: Column, missing: np.ndarray, tell: Tell
) -> list[EncodedColumn]:
    numbers = read.numbers
    assert numbers is not None
    if read.what != "numbers":
        tell(f"Column '{column}' holds {read.what}: used as a number of days.")
    known = numbers[~missing]
    wrong = np.flatnonzero(~missing & ~(np.abs(numbers) <= np.finfo(np.float32).max))
    if len(wrong):
        raise FeelgoodError(
            f"{called} has the value {numbers[wrong[0]]} in row {wrong[0]} of column '{column}': "
            "numbers must be finite in float32, so correct it or leave the row out."
        )
    out = []
    if missing.any():
        middle = float(np.median(known))
        tell(
            f"Column '{column}' has {counted(missing, 'missing value')}: filled with the median "
            f"{middle:g}, and another column says where."
        )
        numbers = np.where(missing, middle, numbers)
        out.append(EncodedColumn(missing.astype(np.float64), "flag"))
    if known.min() == known.max():
        rest = " but for the missing ones" if out else ""
        tell(f"Column '{column}' has the same value in all rows{rest}: left out.")
        return out
    different = np.unique(known)
    if 2 < len(different) <= FEW_NUMBERS < len(known) and (different == np.rint(different)).all():
        tell(
            f"Column '{column}' has {len(different)} different whole numbers: used as a number "
            "(make it text for one-hot)."
        )
    return [EncodedColumn(numbers, "number"), *out]


def _counts(numbers: np.ndarray) -> bool:
    """Whether a column is 0, 1, 2, … or 1, 2, 3, …"""
    return numbers[0] in (0, 1) and len(numbers) > 2 and bool((np.diff(numbers) == 1).all())


def _too_many(different: int, rows: int) -> bool:
    return different > MANY or (rows >= FEW_ROWS and 2 * different > rows)
