"""Columns of an Arrow table as numbers or texts."""

from collections.abc import Callable
from itertools import compress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa

#: Who is told of a guess, in one sentence.
Tell = Callable[[str], None]

DAY = 86_400e6  # microseconds


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
    from feelgood.core.arrow import pa

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
