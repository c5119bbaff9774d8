"""What was run: a folder of Parquet files, one a cell, and a manifest.

    manifest.jsonl      what this folder is; then one line a cell with its checksum
    cells/ID.parquet    one row a seed; opens in pandas, polars or DuckDB without our code
    work/               batches in progress: plans, locks, checkpoints
    damaged/            files that failed their checksum, kept for inspection

A cell's file appears whole, by one rename, and is never overwritten. The manifest only grows. A
cell counts as done when its file is there and has the checksum that the manifest gives, or, where
a crash came between the two, when the file can be read to its end.
"""

import dataclasses
import hashlib
import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from feelgood.arguments import parse_path
from feelgood.errors import FeelgoodError
from feelgood.parquet import read_parquet
from feelgood.results import AgentResult, PosteriorAlong, posterior_columns
from feelgood.studies import atomic
from feelgood.studies.spec import Cell

FORMAT = 1
_HEADER = {"feelgood-store": FORMAT}

SCHEMA = pa.schema(
    [
        ("cell", pa.string()),
        ("testbed", pa.string()),
        ("agent", pa.string()),
        ("settings", pa.string()),
        ("testbed_settings", pa.string()),
        ("rounds", pa.int64()),
        ("seed", pa.int64()),
        ("final_regret", pa.float64()),
        ("simple_regret", pa.float64()),
        ("best_arm_rate", pa.float64()),
        ("arm_counts", pa.list_(pa.int64())),
        ("status", pa.string()),
        ("diverged_at", pa.int64()),
        ("ess", pa.float64()),
        ("curve_rounds", pa.list_(pa.int64())),
        ("curve_regret", pa.list_(pa.float64())),
        (
            "health",
            pa.list_(pa.struct([("measure", pa.string()), ("values", pa.list_(pa.float64()))])),
        ),
        *posterior_columns(),
        ("feelgood", pa.string()),
        ("jax", pa.string()),
        ("python", pa.string()),
        ("device", pa.string()),
        ("commit", pa.string()),
        ("started", pa.string()),
        ("duration_s", pa.float64()),
        ("compile_s", pa.float64()),
        ("run_s", pa.float64()),
        ("batch", pa.string()),
        ("batch_chains", pa.int64()),
    ]
)
#: Columns that say how a number came about, not what it is.
PROVENANCE = tuple(SCHEMA.names[SCHEMA.get_field_index("feelgood") :])


def to_table(cell: Cell, result: AgentResult) -> pa.Table:
    """A cell's results as its file holds them."""
    common = {
        "cell": cell.id,
        "testbed": cell.testbed,
        "agent": cell.agent,
        "settings": json.dumps(dict(cell.settings), sort_keys=True),
        "testbed_settings": json.dumps(dict(cell.testbed_settings), sort_keys=True),
        "rounds": cell.rounds,
        "curve_rounds": result.curve_rounds.tolist(),
        "posterior_rounds": result.posterior and result.posterior.rounds.tolist(),
        **{name: result.provenance.get(name) for name in PROVENANCE},
        "compile_s": result.compile_s,
        "run_s": result.run_s,
    }
    rows = [
        {
            **common,
            "seed": seed,
            "final_regret": _number(result.final_regret[i]),
            "simple_regret": _number(result.simple_regret[i]),
            "best_arm_rate": _number(result.best_arm_rate[i]),
            "arm_counts": result.arm_counts[i].tolist(),
            "status": result.statuses[i].name.lower(),
            "diverged_at": int(result.diverged_at[i]) if result.diverged_at[i] >= 0 else None,
            "ess": _number(result.ess[i]),
            "curve_regret": [_number(v) for v in result.curve[i]],
            "health": [
                {"measure": name, "values": [_number(v) for v in values[i]]}
                for name, values in result.health.items()
            ],
            "posterior": result.posterior and result.posterior.of_seed(i),
        }
        for i, seed in enumerate(cell.seeds)
    ]
    table = pa.Table.from_pylist(rows, schema=SCHEMA)
    return table.replace_schema_metadata({"feelgood.cell": json.dumps(cell.to_json())})


def to_bytes(cell: Cell, result: AgentResult) -> bytes:
    """A cell's file."""
    sink = pa.BufferOutputStream()
    pq.write_table(to_table(cell, result), sink, compression="zstd", write_page_checksum=True)
    return sink.getvalue().to_pybytes()


def _number(value: Any) -> float | None:
    """NaN is stored as null: a chain that diverged has no such number."""
    return float(value) if np.isfinite(value) else None


def from_table(table: pa.Table) -> AgentResult:
    """The results that `to_table` wrote."""
    cell = Cell.from_json(json.loads(table.schema.metadata[b"feelgood.cell"]))
    rows = table.to_pylist()

    def column(name: str) -> np.ndarray:
        return np.array([np.nan if r[name] is None else r[name] for r in rows], np.float64)

    def lists(values: Iterable[Sequence[float | None]]) -> np.ndarray:
        return np.array([[np.nan if v is None else v for v in one] for one in values], np.float64)

    measures = [entry["measure"] for entry in rows[0]["health"]]
    return AgentResult(
        agent=cell.agent,
        testbed=cell.testbed,
        settings=cell.settings,
        testbed_settings=cell.testbed_settings,
        rounds=cell.rounds,
        seeds=cell.seeds,
        final_regret=column("final_regret"),
        simple_regret=column("simple_regret"),
        best_arm_rate=column("best_arm_rate"),
        arm_counts=np.array([r["arm_counts"] for r in rows], np.int64),
        curve_rounds=np.array(rows[0]["curve_rounds"], np.int64),
        curve=lists(r["curve_regret"] for r in rows),
        health={
            name: lists(r["health"][k]["values"] for r in rows) for k, name in enumerate(measures)
        },
        ess=column("ess"),
        posterior=_posterior(rows, lists),
        diverged_at=np.array(
            [-1 if r["diverged_at"] is None else r["diverged_at"] for r in rows], np.int64
        ),
        compile_s=rows[0]["compile_s"],
        run_s=rows[0]["run_s"],
        provenance={name: rows[0][name] for name in PROVENANCE},
    )


def _posterior(rows: list[dict[str, Any]], lists: Callable[..., np.ndarray]) -> Any:
    """The measures along the run; files of earlier versions have no such columns."""
    if rows[0].get("posterior_rounds") is None:
        return None
    measures = [entry["measure"] for entry in rows[0]["posterior"]]
    parts = {
        part: {
            name: lists(r["posterior"][k][column] for r in rows) for k, name in enumerate(measures)
        }
        for part, column in (("value", "values"), ("expected", "expected"), ("error", "errors"))
    }
    return PosteriorAlong(rounds=np.array(rows[0]["posterior_rounds"], np.int64), **parts)


def merge_seeds(results: Iterable[AgentResult]) -> list[AgentResult]:
    """Results of the same agent, settings and testbed as one, seeds in order; each seed once.

    Measuring the posterior does not change a run, so a seed that was run with and without it is
    one run: the measured one.
    """
    groups: dict[str, list[AgentResult]] = {}
    for r in results:
        key = [r.testbed, r.testbed_settings, r.agent, r.settings, r.rounds]
        groups.setdefault(json.dumps(key, sort_keys=True), []).append(r)
    return [_merged(group) for group in groups.values()]


def _merged(parts: list[AgentResult]) -> AgentResult:
    if len(parts) == 1:
        return parts[0]
    place: dict[int, tuple[AgentResult, int]] = {}
    for part in sorted(parts, key=lambda p: (p.posterior is not None, len(p.seeds))):
        place.update({seed: (part, i) for i, seed in enumerate(part.seeds)})
    seeds = tuple(sorted(place))

    def stack(name: str) -> np.ndarray:
        return np.stack([getattr(place[s][0], name)[place[s][1]] for s in seeds])

    names = ("final_regret", "simple_regret", "best_arm_rate", "arm_counts", "curve", "ess")
    stacked: dict[str, Any] = {name: stack(name) for name in (*names, "diverged_at")}
    return dataclasses.replace(
        parts[0],
        seeds=seeds,
        **stacked,
        health={
            k: np.stack([place[s][0].health[k][place[s][1]] for s in seeds])
            for k in parts[0].health
        },
        posterior=_merged_posterior([place[s] for s in seeds]),
        compile_s=sum(p.compile_s for p in parts),
        run_s=sum(p.run_s for p in parts),
        provenance={**parts[0].provenance, "parts": [dict(p.provenance) for p in parts]},
    )


def _merged_posterior(chains: list[tuple[AgentResult, int]]) -> PosteriorAlong | None:
    """The measures of these chains, (result, place in it) each, at all their rounds together."""
    found = [result.posterior for result, _ in chains if result.posterior is not None]
    if not found:
        return None
    rounds = np.unique(np.concatenate([one.rounds for one in found]))
    names = dict.fromkeys(name for one in found for name in one.value)
    parts = {}
    for part in ("value", "expected", "error"):
        parts[part] = {name: np.full((len(chains), len(rounds)), np.nan) for name in names}
        for row, (result, place) in enumerate(chains):
            if result.posterior is not None:
                where = np.searchsorted(rounds, result.posterior.rounds)
                for name, values in getattr(result.posterior, part).items():
                    parts[part][name][row, where] = values[place]
    return PosteriorAlong(rounds=rounds, **parts)


@dataclasses.dataclass(frozen=True)
class Damage:
    """A file that failed its checksum, and where it was put."""

    file: Path
    kept_at: Path

    def __str__(self) -> str:
        return f"{self.file} is damaged: it was set aside as {self.kept_at} and will be run again."


class Store:
    """A folder of results. Any number of processes may use it at once."""

    def __init__(self, path: str | Path | Any, *, create: bool = True) -> None:
        self.path = parse_path(path, "folder")
        self.cells_folder = self.path / "cells"
        self.work_folder = self.path / "work"
        self.manifest = self.path / "manifest.jsonl"
        self.lock = atomic.Lock(self.path / "work" / "store.lock")
        if not self.manifest.exists():
            if not create:
                raise FeelgoodError(
                    f"{self.path} is not a results store (no {self.manifest.name} in it): give "
                    "the folder that a study wrote."
                )
            if self._is_something_else():
                raise FeelgoodError(
                    f"{self.path} exists and is not a results store: choose another folder."
                )
            line = json.dumps(_HEADER).encode() + b"\n"
            atomic.write(self.manifest, lambda file: file.write(line), replace=False)
        self._check_format()

    def _is_something_else(self) -> bool:
        """Whether the folder holds files that are not a store in the making."""
        if not self.path.is_dir():
            return self.path.exists()
        others = (p.name for p in self.path.iterdir())
        ours = (self.work_folder.name, self.manifest.name)
        return any(n not in ours and not n.startswith(f".{self.manifest.name}") for n in others)

    def _check_format(self) -> None:
        with self.manifest.open("rb") as file:
            try:
                header = json.loads(file.readline())
                known = header["feelgood-store"]
            except (ValueError, KeyError, TypeError):
                known = None
        if known != FORMAT:
            raise FeelgoodError(
                f"{self.manifest} is not that of a store of format {FORMAT}: it was written by "
                "another version or is damaged; choose another folder."
            )

    def file(self, cell_id: str) -> Path:
        """Where a cell's results are, or will be."""
        return self.cells_folder / f"{cell_id}.parquet"

    def checksums(self) -> dict[str, str]:
        """SHA-256 of each cell's file, by the manifest; torn lines are passed over."""
        sums: dict[str, str] = {}
        for line in self.manifest.read_bytes().splitlines()[1:]:
            try:
                entry = json.loads(line)
                sums[str(entry["cell"])] = str(entry["sha256"])
            except (ValueError, KeyError, TypeError):
                continue
        return sums

    def present(self) -> set[str]:
        """Cells that have a file, sound or not: quick, for planning."""
        return {file.stem for file in self.cells_folder.glob("[!.]*.parquet")}

    def put(self, cell: Cell, result: AgentResult) -> bool:
        """Write a finished cell; False when it was there already, which is left as it is."""
        return self.put_bytes(cell.id, to_bytes(cell, result))

    def put_bytes(self, cell_id: str, content: bytes) -> bool:
        """Write a cell's file as it is."""
        with self.lock:
            placed = atomic.write(
                self.file(cell_id), lambda file: file.write(content), replace=False
            )
            if placed:
                entry = {
                    "cell": cell_id,
                    "sha256": hashlib.sha256(content).hexdigest(),
                    "bytes": len(content),
                }
                atomic.append_line(self.manifest, json.dumps(entry).encode())
        return placed

    def read(self, cell_id: str, checksum: str | None = None) -> AgentResult:
        """One cell's results; an error when the file is not what was written."""
        content = self.file(cell_id).read_bytes()
        if checksum is not None and hashlib.sha256(content).hexdigest() != checksum:
            raise ValueError("checksum")
        return from_table(read_parquet(content))

    def verify(self, cell_ids: Iterable[str] | None = None) -> list[Damage]:
        """Read the cells' files; set aside each that is damaged and say so."""
        sums = self.checksums()
        wanted = self.present() if cell_ids is None else self.present() & set(cell_ids)
        found = []
        for cell_id in sorted(wanted):
            try:
                self.read(cell_id, sums.get(cell_id))
            except (OSError, ValueError, KeyError, IndexError, pa.ArrowException):
                found.append(self._set_aside(cell_id))
        return found

    def _set_aside(self, cell_id: str) -> Damage:
        file = self.file(cell_id)
        kept = self.path / "damaged" / f"{cell_id}-{time.time_ns()}.parquet"
        with self.lock, atomic.reporting(kept):
            kept.parent.mkdir(parents=True, exist_ok=True)
            file.rename(kept)
        return Damage(file, kept)

    def done(self, cells: Iterable[Cell]) -> Iterator[tuple[Cell, AgentResult]]:
        """The cells among these that are finished, with their results."""
        present, sums = self.present(), self.checksums()
        for cell in cells:
            if cell.id in present:
                try:
                    yield cell, self.read(cell.id, sums.get(cell.id))
                except (OSError, ValueError, KeyError, IndexError, pa.ArrowException):
                    continue

    def results(self, cells: Iterable[Cell] | None = None) -> list[AgentResult]:
        """Results of these cells, or of all; cells that differ in their seeds only are one result.

        Damaged files are left out here; `verify` names them.
        """
        if cells is not None:
            return merge_seeds(result for _, result in self.done(cells))
        sums = self.checksums()
        found = []
        for cell_id in sorted(self.present()):
            try:
                found.append(self.read(cell_id, sums.get(cell_id)))
            except (OSError, ValueError, KeyError, IndexError, pa.ArrowException):
                continue
        return merge_seeds(sorted(found, key=lambda r: (r.testbed, r.agent, r.seeds)))

    def table(self, cells: Iterable[Cell]) -> pa.Table:
        """The rows of these cells as one table."""
        parts = [
            read_parquet(self.file(cell.id).read_bytes()).replace_schema_metadata(None)
            for cell, _ in self.done(cells)
        ]
        # Files of earlier versions lack columns, which are null here.
        return pa.concat_tables([SCHEMA.empty_table(), *parts], promote_options="default")
