"""What a log says of a decision: one Arrow schema, and the checks that every reader shares.

| column | type | meaning |
|---|---|---|
| `id` | string or int64 | of the decision |
| `time` | timestamp, µs, UTC | of the decision; null: not known |
| `context` | list of float32 | what the agent saw; null: only features of arms |
| `arm_features` | list of lists of float32 | one vector per arm of `arms`; null: none |
| `arm` | string | the arm that was played |
| `arms` | list of strings | the arms that could have been played |
| `reward` | float64 | null: it never came |
| `weight` | float64 | how often the decision counts, in learning and in estimates |
| `probability` | float64 | with which the arm was played; null: not known |
| `pmf` | list of float64 | the probability of each of `arms`; null: not known |
| `version` | int64 | number of rewards that the agent had learned from; null: not known |
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from feelgood.core.arrow import pa, pc
from feelgood.core.errors import FeelgoodError, shown

_TIME = pa.timestamp("us", "UTC")
#: Types of all columns but `id`, in order.
_TYPES: Mapping[str, pa.DataType] = {
    "time": _TIME,
    "context": pa.list_(pa.float32()),
    "arm_features": pa.list_(pa.list_(pa.float32())),
    "arm": pa.string(),
    "arms": pa.list_(pa.string()),
    "reward": pa.float64(),
    "weight": pa.float64(),
    "probability": pa.float64(),
    "pmf": pa.list_(pa.float64()),
    "version": pa.int64(),
}
#: How far the probabilities of one decision may be from a sum of 1: they may have been float32.
SUM_TOLERANCE = 1e-3


def event_schema(id_type: pa.DataType | None = None) -> pa.Schema:
    """The schema of events whose ids are of this type: int64 unless told otherwise."""
    return pa.schema([("id", id_type or pa.int64()), *_TYPES.items()])


@dataclasses.dataclass(frozen=True)
class Events:
    """Checked events, one row per decision, and what was noticed while they were read."""

    table: pa.Table
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return self.table.num_rows

    @property
    def arms(self) -> tuple[str, ...]:
        """All arms that were ever offered, in the order of their first appearance."""
        return tuple(pc.unique(pc.list_flatten(self.table["arms"])).to_pylist())

    def numbers(self, name: str) -> np.ndarray:
        """A column of numbers as float64; NaN where it is null."""
        column = self.table[name].cast(pa.float64())
        return np.asarray(pc.fill_null(column, float("nan")).to_numpy(zero_copy_only=False))


def make_events(columns: Mapping[str, Any], called: str, notes: Sequence[str] = ()) -> Events:
    """Events from columns by name, checked; `arm` is needed, all others have a default.

    By default the ids are row numbers, the weights 1, and `arms` all arms of the log.
    """
    rows = len(columns["arm"])
    if not rows:
        raise FeelgoodError(f"{called} has no decisions: give a log with at least one.")
    filled = dict(columns)
    if filled.get("id") is None:
        filled["id"] = np.arange(rows)
    if filled.get("weight") is None:
        filled["weight"] = np.ones(rows)
    arm = _column(called, "arm", filled["arm"], pa.string())
    if arm.null_count:
        raise FeelgoodError(f"{called} has no arm in row {_first_null(arm)}: leave the row out.")
    if filled.get("arms") is None:
        offered = sorted(pc.unique(arm).to_pylist())
        filled["arms"] = same_in_all_rows(offered, rows, pa.string())
    id_type = pa.int64() if _is_whole(filled["id"]) else pa.string()
    made = [_column(called, "id", filled["id"], id_type)]
    for name, kind in _TYPES.items():
        given = filled.get(name)
        made.append(pa.nulls(rows, kind) if given is None else _column(called, name, given, kind))
    table = pa.table(made, schema=event_schema(id_type))
    weights = pc.fill_null(table["weight"], 1.0)
    table = table.set_column(table.column_names.index("weight"), "weight", weights)
    check_events(table, called)
    if filled.get("probability") is None and not table["pmf"].null_count:
        own = pa.array(_chance_of_played(table))
        table = table.set_column(table.column_names.index("probability"), "probability", own)
        check_events(table, called)
    return Events(table, tuple(notes))


def same_in_all_rows(values: Sequence[Any], rows: int, kind: pa.DataType) -> pa.Array:
    """A list column that has the same list in every row."""
    offsets = np.arange(rows + 1, dtype=np.int32) * len(values)
    each = pa.array(values, kind).take(pa.array(np.tile(np.arange(len(values)), rows)))
    return pa.ListArray.from_arrays(pa.array(offsets), each)


def rows_as_lists(matrix: np.ndarray, kind: pa.DataType) -> pa.Array:
    """A matrix as a column of lists, one per row."""
    rows, width = matrix.shape
    offsets = np.arange(rows + 1, dtype=np.int32) * width
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(matrix.ravel(), kind))


def _is_whole(ids: Any) -> bool:
    kind = getattr(ids, "type", None)
    if isinstance(kind, pa.DataType):
        return bool(pa.types.is_integer(kind))
    return np.asarray(ids).dtype.kind in "iu"


def _column(called: str, name: str, given: Any, kind: pa.DataType) -> pa.Array:
    """A column in the type of the schema."""
    try:
        if isinstance(given, pa.ChunkedArray):
            given = given.combine_chunks()
        made = given if isinstance(given, pa.Array) else pa.array(given)
        if pa.types.is_dictionary(made.type):
            made = made.dictionary_decode()
        if kind == _TIME and pa.types.is_timestamp(made.type) and made.type.tz is None:
            made = made.cast(pa.timestamp("us"), safe=False)
        made = made.cast(kind, safe=kind != _TIME and not pa.types.is_list(kind))
        return made.combine_chunks() if isinstance(made, pa.ChunkedArray) else made
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        reason = " ".join(str(error).split())[:120].rstrip(". ")
        raise FeelgoodError(
            f"the column '{name}' of {called} is not of the type {kind} ({reason}): convert it."
        ) from None


def _first_null(column: pa.Array) -> int:
    return int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])


def check_events(table: pa.Table, called: str) -> None:
    """Refuse events that contradict themselves, in one sentence that names the row."""
    _check_ids(table, called)
    rules: dict[str, tuple[str, Callable[[np.ndarray], np.ndarray]]] = {
        "reward": ("a finite number", np.isfinite),
        "weight": ("a finite number at least 0", lambda x: np.isfinite(x) & (x >= 0)),
        "probability": ("above 0 and at most 1", lambda x: (x > 0) & (x <= 1)),
    }
    for name, (what, allowed) in rules.items():
        column = table[name].combine_chunks()
        known = ~np.asarray(column.is_null().to_numpy(zero_copy_only=False))
        values = np.asarray(pc.fill_null(column, 0.5).to_numpy(zero_copy_only=False))
        _refuse(called, name, values, known & ~allowed(values), f"make it {what}")
    for name in ("context", "arm_features"):
        flat = pc.list_flatten(table[name])
        flat = pc.list_flatten(flat) if name == "arm_features" else flat
        if flat.null_count or not np.isfinite(flat.to_numpy()).all():
            raise FeelgoodError(
                f"the column '{name}' of {called} has a number that is not finite: correct it or "
                "leave the row out."
            )
    _check_lists(table, called)


def _check_ids(table: pa.Table, called: str) -> None:
    ids = table["id"]
    if ids.null_count:
        raise FeelgoodError(f"{called} has a decision without an id: number the decisions.")
    if pc.count_distinct(ids).as_py() != len(ids):
        counts = pc.value_counts(ids)
        twice = counts.filter(pc.greater(counts.field("counts"), 1))[0]["values"].as_py()
        raise FeelgoodError(f"{called} has two decisions with the id {shown(twice)}: rename one.")


def _refuse(called: str, name: str, values: np.ndarray, wrong: np.ndarray, remedy: str) -> None:
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        (value,) = values[row : row + 1].tolist()
        raise FeelgoodError(f"{called} has {name} = {shown(value)} in row {row}: {remedy}.")


def _chance_of_played(table: pa.Table) -> np.ndarray:
    """What `pmf` says of the arm that was played; NaN where there is none."""
    known = table.filter(pc.is_valid(table["pmf"]))
    offered = known["arms"].combine_chunks()
    played = known["arm"].combine_chunks().take(pc.list_parent_indices(offered))
    same = pc.equal(offered.flatten(), played).to_numpy(zero_copy_only=False)
    out = np.full(table.num_rows, np.nan)
    here = pc.is_valid(table["pmf"]).to_numpy()
    out[here] = pc.list_flatten(known["pmf"].combine_chunks()).to_numpy()[same]
    return out


def _check_lists(table: pa.Table, called: str) -> None:
    """The arm was offered, and there is one probability and one vector per offered arm."""
    rows = table.num_rows
    offered = table["arms"].combine_chunks()
    if offered.null_count:
        raise FeelgoodError(f"{called} offers no arms in row {_first_null(offered)}: list them.")
    row_of = pc.list_parent_indices(offered).to_numpy()
    labels = offered.flatten()
    played = table["arm"].combine_chunks().take(pa.array(row_of))
    same = pc.fill_null(pc.equal(labels, played), False).to_numpy(zero_copy_only=False)
    times = np.bincount(row_of, weights=same, minlength=rows)
    arms = np.array(table["arm"].to_pylist(), dtype=object)
    _refuse(called, "arm", arms, times != 1, "list it once among the arms that were offered")
    for name, what in (("pmf", "probability"), ("arm_features", "vector")):
        column = table[name].combine_chunks()
        known = ~np.asarray(column.is_null().to_numpy(zero_copy_only=False))
        lengths = np.asarray(pc.fill_null(pc.list_value_length(column), 0).to_numpy())
        wrong = known & (lengths != np.asarray(pc.list_value_length(offered).to_numpy()))
        _refuse(called, f"the length of {name}", lengths, wrong, f"give one {what} per arm")
    pmf = table["pmf"].combine_chunks()
    known = ~np.asarray(pmf.is_null().to_numpy(zero_copy_only=False))
    chances = pmf.flatten().to_numpy(zero_copy_only=False)
    owner = pc.list_parent_indices(pmf).to_numpy()
    sums = np.bincount(owner, weights=np.where(chances >= 0, chances, np.nan), minlength=rows)
    wrong = known & ~(np.abs(sums - 1) <= SUM_TOLERANCE)
    _refuse(called, "the sum of pmf", sums, wrong, "make the probabilities of all arms add up to 1")
    told, own = pc.fill_null(table["probability"], np.nan).to_numpy(), _chance_of_played(table)
    wrong = np.abs(told - own) > SUM_TOLERANCE
    _refuse(called, "probability", told, wrong, "make it what pmf says of the arm")
