"""Logs in data frames, tables and files of separated values."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from feelgood.core.arrow import pa
from feelgood.core.errors import FeelgoodError, did_you_mean, shown
from feelgood.core.table_columns import read_column
from feelgood.core.tables import to_arrow_table
from feelgood.logs.encoding import encode_columns
from feelgood.logs.event_schema import Events, make_events, rows_as_lists

#: What the columns of the schema are called elsewhere; the first that is there is taken.
ALIASES = {
    "id": ("id", "event_id", "decision_id"),
    "time": ("time", "timestamp"),
    "arm": ("arm", "action", "item_id"),
    "reward": ("reward", "click"),
    "probability": ("probability", "propensity", "propensity_score", "pscore", "action_prob"),
}
#: Columns that are taken under their own name alone.
SCHEMA_COLUMNS = ("context", "arm_features", "arms", "weight", "pmf", "version")


def events_from_frame(
    frame: Any,
    *,
    arm: str | None = None,
    reward: str | None = None,
    probability: str | None = None,
    features: Sequence[str] | None = None,
) -> Events:
    """Events from a frame of pandas or polars, an Arrow table or a file: one row per decision.

    Columns that have the names of the schema are taken as such. The context is the column `context`
    if that holds lists; otherwise all columns that are nothing else, or those in `features`. What
    is guessed is among the notes.

    **Example:**

    >>> import pyarrow as pa
    >>> from feelgood.logs.frame_events import events_from_frame
    >>> frame = pa.table({"age": [20, 35], "action": ["tea", "rum"], "reward": [1, 0]})
    >>> events = events_from_frame(frame)
    >>> events.arms, events.table["context"].to_pylist()
    (('rum', 'tea'), [[20.0], [35.0]])
    """
    notes: list[str] = []
    table, called = to_arrow_table(frame, notes.append)
    given = {"arm": arm, "reward": reward, "probability": probability}
    found = {name: _find(table, called, name, given.get(name)) for name in ALIASES}
    for name in ("arm", "reward"):
        if found[name] is None:
            raise FeelgoodError(
                f"{called} has no column for the {name}: name it, among "
                f"{shown(', '.join(table.column_names))}."
            )
    columns: dict[str, Any] = {
        name: table[column] for name, column in found.items() if column is not None
    }
    columns["arm"] = pa.array(_labels(table[str(found["arm"])], called), pa.string())
    columns |= {name: table[name] for name in SCHEMA_COLUMNS if name in table.column_names}
    if features is not None or "context" not in columns:
        taken = {*found.values(), *SCHEMA_COLUMNS}
        names = [n for n in table.column_names if n not in taken] if features is None else features
        for name in names:
            _known(table, called, name)
        encoded = encode_columns(table, names, called, notes)
        columns["context"] = None if encoded is None else rows_as_lists(encoded, pa.float32())
    return make_events(columns, called, notes)


def _find(table: pa.Table, called: str, name: str, given: str | None) -> str | None:
    if given is not None:
        return _known(table, called, given)
    return next((alias for alias in ALIASES[name] if alias in table.column_names), None)


def _known(table: pa.Table, called: str, name: str) -> str:
    if name not in table.column_names:
        raise FeelgoodError(
            f"{called} has no column {shown(name)}: {did_you_mean(str(name), table.column_names)}"
        )
    return name


def _labels(column: pa.ChunkedArray, called: str) -> list[str | None]:
    """Arms as texts: 3, not 3.0."""
    read = read_column(column)
    if read.texts is not None:
        return read.texts
    if read.numbers is None or read.what != "numbers":
        raise FeelgoodError(f"the arms of {called} are of the kind {read.what}: make them texts.")
    return [None if np.isnan(x) else f"{x:.17g}" for x in read.numbers.tolist()]
