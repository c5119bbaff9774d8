"""The file of a cell: one row per seed, in Parquet. `engine.schema` says what was measured."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from feelgood.core.arrow import pa, pq
from feelgood.core.parquet import read_parquet
from feelgood.engine.columns import CELL_FILE, arrow_columns, measured_fields, measured_rows
from feelgood.engine.results import AgentResult
from feelgood.studies.planning import Cell, spec_id

#: Columns that say how a number came about, not what it is.
_ORIGIN: Mapping[str, Any] = {
    **dict.fromkeys(("feelgood", "jax", "python", "device", "commit", "started"), pa.string()),
    **dict.fromkeys(("duration_s", "compile_s", "run_s"), pa.float64()),
    "batch": pa.string(),
    "batch_chains": pa.int64(),
}
PROVENANCE = tuple(_ORIGIN)


def cell_schema() -> pa.Schema:
    """The columns of a cell's file."""
    texts = ("cell", "testbed", "agent", "settings", "testbed_settings")
    return pa.schema(
        [
            *((name, pa.string()) for name in texts),
            ("rounds", pa.int64()),
            ("seed", pa.int64()),
            *arrow_columns(CELL_FILE),
            *_ORIGIN.items(),
        ]
    )


def to_table(cell: Cell, result: AgentResult) -> pa.Table:
    """A cell's results as its file holds them."""
    common = {
        "cell": cell.id,
        "testbed": cell.testbed,
        "agent": cell.agent,
        "settings": json.dumps(dict(cell.settings), sort_keys=True),
        "testbed_settings": json.dumps(dict(cell.testbed_settings), sort_keys=True),
        "rounds": cell.rounds,
        **{name: result.provenance.get(name) for name in PROVENANCE},
        "compile_s": result.compile_s,
        "run_s": result.run_s,
    }
    measured = zip(cell.seeds, measured_rows(result, CELL_FILE), strict=True)
    rows = [{**common, "seed": seed, **row} for seed, row in measured]
    table = pa.Table.from_pylist(rows, schema=cell_schema())
    return table.replace_schema_metadata({"feelgood.cell": json.dumps(cell.to_json())})


def to_bytes(cell: Cell, result: AgentResult) -> bytes:
    """A cell's file."""
    sink = pa.BufferOutputStream()
    pq.write_table(to_table(cell, result), sink, compression="zstd", write_page_checksum=True)
    return sink.getvalue().to_pybytes()


def check_cell_name(cell_id: str, table: pa.Table) -> None:
    """Refuse another cell's file, or a part of one."""
    spec = json.loads(table.schema.metadata[b"feelgood.cell"])
    if spec_id(spec) != cell_id or set(table["cell"].to_pylist()) != {cell_id}:
        raise ValueError("it holds another cell")
    if table["seed"].to_pylist() != spec["seeds"]:
        raise ValueError("it holds other seeds than it should")


def from_table(table: pa.Table) -> AgentResult:
    """The results that `to_table` wrote."""
    cell = Cell.from_json(json.loads(table.schema.metadata[b"feelgood.cell"]))
    rows = table.to_pylist()
    return AgentResult(
        agent=cell.agent,
        testbed=cell.testbed,
        settings=cell.settings,
        testbed_settings=cell.testbed_settings,
        rounds=cell.rounds,
        seeds=cell.seeds,
        **measured_fields(rows, CELL_FILE),
        compile_s=rows[0]["compile_s"],
        run_s=rows[0]["run_s"],
        provenance={name: rows[0][name] for name in PROVENANCE}
        | ({"code": dict(cell.code)} if cell.code else {}),
    )


def open_cell(cell_id: str, content: bytes, checksum: str | None) -> tuple[pa.Table, AgentResult]:
    """What a cell's file holds; a `ValueError` when it is not what was written."""
    if checksum is not None and hashlib.sha256(content).hexdigest() != checksum:
        raise ValueError("its checksum is another")
    try:
        table = read_parquet(content)
        check_cell_name(cell_id, table)
        return table, from_table(table)
    except MemoryError:
        raise
    except Exception as error:  # of files that others wrote anything may be wrong
        known = isinstance(error, ValueError) and not isinstance(error, pa.ArrowException)
        raise ValueError(str(error) if known else "it is no such file") from error
