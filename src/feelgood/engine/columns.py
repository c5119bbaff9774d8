"""Results as rows of a table, one per seed, and back. `schema.QUANTITIES` says which columns."""

import dataclasses
import json
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from feelgood.engine import schema
from feelgood.engine.results import AgentResult, PosteriorAlong, absent, has_field, in_fields
from feelgood.engine.schema import Axes, Quantity

if TYPE_CHECKING:
    import pyarrow as pa

#: Parts of `PosteriorAlong`, and what files call them.
_PARTS = {"value": "values", "expected": "expected", "error": "errors"}


@dataclasses.dataclass(frozen=True)
class TableLayout:
    """How one kind of file holds results."""

    holds: Callable[[Quantity], bool]
    #: Whether there is a column that says what became of each chain.
    status: bool = True
    #: Whether NaN is null.
    null: bool = True
    #: Whether diagnostics are in single precision and measures without their errors.
    small: bool = False


#: `RunResult.to_arrow`; a study's cell; the results of the showdown.
RUN_TABLE = TableLayout(lambda quantity: quantity.in_table, null=False)
CELL_FILE = TableLayout(lambda quantity: True)
SHOWDOWN = TableLayout(lambda quantity: quantity.showdown != "no", status=False, small=True)


def arrow_columns(layout: TableLayout) -> list[tuple[str, Any]]:
    """Name and type of each column that holds something measured."""
    from feelgood.core.arrow import pa

    out: list[tuple[str, Any]] = []
    for quantity in filter(layout.holds, schema.QUANTITIES):
        if quantity.name == "diverged_at" and layout.status:
            out.append(("status", pa.string()))
        if quantity.name == "curve":
            out.append(("curve_rounds", pa.list_(pa.int64())))
        out.append((quantity.column, _arrow_type(quantity, layout)))
    lists = pa.list_(pa.float32() if layout.small else pa.float64())
    parts = [(part, lists) for part in _PARTS.values() if not (layout.small and part == "errors")]
    measures = pa.list_(pa.struct([("measure", pa.string()), *parts]))
    return [*out, ("posterior_rounds", pa.list_(pa.int64())), ("posterior", measures)]


def _arrow_type(quantity: Quantity, layout: TableLayout) -> Any:
    from feelgood.core.arrow import pa

    single = layout.small and quantity.showdown == "single"
    one = pa.int64() if quantity.whole else pa.float32() if single else pa.float64()
    if quantity.axes is Axes.SEED:
        return one
    if quantity.axes is Axes.DIAGNOSTIC:
        return pa.list_(pa.struct([("measure", pa.string()), ("values", pa.list_(one))]))
    return pa.list_(one)


def to_arrow(results: Sequence[AgentResult]) -> "pa.Table":
    """One row per agent, setting and seed, with the curve as a list column."""
    from feelgood.core.arrow import pa

    rows = []
    for r in results:
        which = {
            "agent": r.agent,
            "testbed": r.testbed,
            "settings": json.dumps(dict(r.settings), sort_keys=True),
            "rounds": r.rounds,
        }
        for seed, row in zip(r.seeds, measured_rows(r, RUN_TABLE), strict=True):
            rows.append({**which, "seed": seed, **row})
    texts = [(name, pa.string()) for name in ("agent", "testbed", "settings")]
    counts = [(name, pa.int64()) for name in ("rounds", "seed")]
    columns = pa.schema([*texts, *counts, *arrow_columns(RUN_TABLE)])
    return pa.Table.from_pylist(rows, schema=columns)


def to_tree(results: Sequence[AgentResult], interrupted: bool = False) -> dict[str, Any]:
    """`{"results": [...]}` in plain types, one object per agent and setting."""
    tree: dict[str, Any] = {"results": [r.to_json() for r in results]}
    return {**tree, "interrupted": True} if interrupted else tree


def measured_rows(result: AgentResult, layout: TableLayout) -> list[dict[str, Any]]:
    """Everything measured, one row per seed."""
    return [_row(result, i, layout) for i in range(len(result.seeds))]


def _row(result: AgentResult, i: int, layout: TableLayout) -> dict[str, Any]:
    along = result.posterior
    out: dict[str, Any] = {
        "curve_rounds": result.curve_rounds.tolist(),
        "posterior_rounds": None if along is None else along.rounds.tolist(),
        "posterior": None if along is None else _measures(along, i, layout),
    }
    if layout.status:
        out["status"] = result.statuses[i].name.lower()
    for quantity in filter(layout.holds, schema.QUANTITIES):
        values = result.values_of(quantity)
        if quantity.axes is Axes.DIAGNOSTIC:
            out[quantity.column] = [
                {"measure": name, "values": _plain(quantity, own[i], layout)}
                for name, own in values.items()
            ]
        else:
            out[quantity.column] = _plain(quantity, values[i], layout)
    return out


def _plain(quantity: Quantity, values: Any, layout: TableLayout) -> Any:
    """A value or an array of them in Python's own types; null where there is none."""
    plain = values.tolist()
    if not quantity.whole:
        if not layout.null:
            return plain
        return [_finite(v) for v in plain] if isinstance(plain, list) else _finite(plain)
    return None if quantity.none is not None and plain == quantity.none else plain


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _measures(along: PosteriorAlong, i: int, layout: TableLayout) -> list[dict[str, Any]]:
    """The measures of one seed, one record per measure."""
    records = along.of_seed(i)
    if layout.small:
        return [{k: v for k, v in record.items() if k != "errors"} for record in records]
    return records


def measured_fields(rows: Sequence[dict[str, Any]], layout: TableLayout) -> dict[str, Any]:
    """What `measured_rows` wrote, as arguments of `AgentResult`.

    A number that has no field there may be absent: files of earlier versions lack it.
    """
    values: dict[str, Any] = {}
    for quantity in schema.QUANTITIES:
        if not layout.holds(quantity):
            values[quantity.name] = absent(quantity, len(rows), len(rows[0]["curve_rounds"]))
        elif (column := quantity.column) in rows[0] or has_field(quantity):
            values[quantity.name] = _read(quantity, [row[column] for row in rows])
    return {
        **in_fields(values),
        "curve_rounds": np.array(rows[0]["curve_rounds"], np.int64),
        "posterior": _read_posterior(rows),
    }


def _read(quantity: Quantity, column: Sequence[Any]) -> Any:
    if quantity.axes is Axes.DIAGNOSTIC:
        names = [entry["measure"] for entry in column[0]]
        return {name: _floats([own[k]["values"] for own in column]) for k, name in enumerate(names)}
    if quantity.whole:
        return np.array([quantity.none if v is None else v for v in column], np.int64)
    return _floats(column)


def _floats(values: Sequence[Any]) -> np.ndarray:
    """Numbers, or lists of them, with NaN for null: what NumPy makes of None."""
    return np.array(values, np.float64)


def _read_posterior(rows: Sequence[dict[str, Any]]) -> PosteriorAlong | None:
    """The measures along the run; files of earlier versions have no such columns."""
    if any(row.get("posterior") is None for row in rows):
        return None
    first = rows[0]["posterior"]
    parts = {
        part: {
            entry["measure"]: _floats([row["posterior"][k][column] for row in rows])
            for k, entry in enumerate(first)
            if column in entry
        }
        for part, column in _PARTS.items()
    }
    return PosteriorAlong(rounds=np.array(rows[0]["posterior_rounds"], np.int64), **parts)
