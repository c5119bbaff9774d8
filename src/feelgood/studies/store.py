"""What was run: a folder of Parquet files, one a cell, and a manifest.

    manifest.jsonl      what this folder is; then one line a cell with its checksum
    cells/ID.parquet    one row a seed; opens in pandas, polars or DuckDB without our code
    work/               batches in progress: plans, locks, checkpoints
    damaged/            files that failed their checksum, kept for inspection

A cell's file appears whole, by one rename, and is never overwritten. The manifest only grows. A
cell counts as done when its file is there and has the checksum that the manifest gives, or, where
a crash came between the two, when the file can be read to its end and holds what its name says.
Everything that reads a store says what it left out.
"""

import dataclasses
import hashlib
import json
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from feelgood.arguments import parse_path
from feelgood.errors import FeelgoodError
from feelgood.memory import say
from feelgood.parquet import read_parquet
from feelgood.results import AgentResult, PosteriorAlong, posterior_columns
from feelgood.studies import atomic, replacing
from feelgood.studies.spec import Cell, spec_id

#: A later format must be visible in the cells' files too: a store whose manifest has lost its
#: header is known by them.
FORMAT = 1
_HEADER = {"feelgood-store": FORMAT}
_CELL_FILE = re.compile(r"[0-9a-f]{24}\.parquet")

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


def check_name(cell_id: str, table: pa.Table) -> None:
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
        provenance={name: rows[0][name] for name in PROVENANCE}
        | ({"code": dict(cell.code)} if cell.code else {}),
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
        code = r.provenance.get("code")
        key = [r.testbed, r.testbed_settings, r.agent, r.settings, r.rounds, code]
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


def _is_cell(name: str) -> bool:
    return _CELL_FILE.fullmatch(name) is not None


def _entry(cell_id: str, content: bytes) -> dict[str, Any]:
    """A cell's line in the manifest."""
    return {
        "cell": cell_id,
        "sha256": hashlib.sha256(content).hexdigest(),
        "bytes": len(content),
    }


def _open(cell_id: str, content: bytes, checksum: str | None) -> tuple[pa.Table, AgentResult]:
    """What a cell's file holds; a `ValueError` when it is not what was written."""
    if checksum is not None and hashlib.sha256(content).hexdigest() != checksum:
        raise ValueError("its checksum is another")
    try:
        table = read_parquet(content)
        check_name(cell_id, table)
        return table, from_table(table)
    except MemoryError:
        raise
    except Exception as error:  # of files that others wrote anything may be wrong
        known = isinstance(error, ValueError) and not isinstance(error, pa.ArrowException)
        raise ValueError(str(error) if known else "it is no such file") from error


def _newest_code(found: dict[str, AgentResult]) -> tuple[dict[str, AgentResult], list[str]]:
    """Of each agent on a testbed the runs by the newest code, and of which there are others.

    Only plug-ins have code that changes from one run to the next.
    """
    newest: dict[tuple[str, str], tuple[str, str]] = {}

    def code_of(result: AgentResult) -> str:
        return json.dumps(result.provenance.get("code"), sort_keys=True)

    outdated = set()
    for r in found.values():
        which, mine = (r.testbed, r.agent), (str(r.provenance.get("started")), code_of(r))
        best = newest.setdefault(which, mine)
        newest[which] = max(best, mine)
        if best[1] != mine[1]:
            outdated.add(f"{r.agent} on {r.testbed}")
    kept = {i: r for i, r in found.items() if newest[r.testbed, r.agent][1] == code_of(r)}
    return kept, sorted(outdated)


@dataclasses.dataclass(frozen=True)
class Damage:
    """A file that is not what was written, and what was done about it."""

    file: Path
    done: str

    def __str__(self) -> str:
        return f"{self.file} is damaged: {self.done}."


@dataclasses.dataclass(frozen=True)
class Reading:
    """What a store holds, and what of it could not be used."""

    found: dict[str, AgentResult]
    #: Cells whose files are damaged or cannot be read, and why.
    left_out: dict[str, str]
    #: Files among the cells that are none.
    foreign: tuple[str, ...] = ()
    #: Agents, on testbeds, of which runs by an earlier version of a plug-in are there too.
    outdated: tuple[str, ...] = ()

    def notices(self) -> list[str]:
        """What was left out, one sentence each; empty when nothing was."""
        said = []
        if self.left_out:
            cell, reason = next(iter(self.left_out.items()))
            said.append(
                f"{len(self.left_out)} of {len(self.found) + len(self.left_out)} cells are left "
                f"out, the first {cell}.parquet ({reason}): run their study again to mend that."
            )
        if self.foreign:
            said.append(
                f"{len(self.foreign)} files in the folder cells are not cells of this store and "
                f"are left out, the first {self.foreign[0]}."
            )
        if self.outdated:
            said.append(
                f"runs by an earlier version of a plug-in are left out: {', '.join(self.outdated)}."
            )
        return said


class Store:
    """A folder of results. Any number of processes may use it at once.

    **Arguments:**

    - `path`: the folder.
    - `create`: whether to make it where there is none; otherwise that is an error.
    - `notify`: gets a sentence whenever something that was asked for is left out because its file
      is damaged or cannot be read; by default it is printed to standard error.
    """

    def __init__(
        self, path: str | Path | Any, *, create: bool = True, notify: Callable[[str], None] = say
    ) -> None:
        self.path = parse_path(path, "folder")
        self.notify = notify
        self.cells_folder = self.path / "cells"
        self.work_folder = self.path / "work"
        self.manifest = self.path / "manifest.jsonl"
        self.lock = atomic.Lock(self.path / "work" / "store.lock")
        replacing.complete(self.path)
        with atomic.reading(self.path):
            is_store = self._is_store()
            if not is_store and (not create or self._is_something_else()):
                wrong = "exists and is not" if create else "is not"
                raise FeelgoodError(
                    f"{self.path} {wrong} a results store of format {FORMAT} (no sound "
                    f"{self.manifest.name} in it and no cells): "
                    + ("choose another folder." if create else "give the folder of a study.")
                )
        if not is_store:
            with self.lock:
                self._write_manifest([])

    def _is_store(self) -> bool:
        """By its manifest, or, where that is damaged, by what is in it."""
        return self._header_is_sound() or any(self._is_sound(i) for i in self.present())

    def _header_is_sound(self) -> bool:
        try:
            with self.manifest.open("rb") as file:
                header = json.loads(file.readline())
        except (FileNotFoundError, NotADirectoryError, ValueError):
            return False
        return isinstance(header, dict) and header.get("feelgood-store") == FORMAT

    def _is_something_else(self) -> bool:
        """Whether the folder holds files that are not a store in the making."""
        if not self.path.is_dir():
            return self.path.exists()
        others = (p.name for p in self.path.iterdir())
        name = self.manifest.name
        return any(n != self.work_folder.name and not n.startswith(f".{name}") for n in others)

    def _write_manifest(self, entries: Iterable[dict[str, Any]]) -> None:
        lines = [json.dumps(entry).encode() + b"\n" for entry in (_HEADER, *entries)]
        atomic.write(self.manifest, lambda file: file.write(b"".join(lines)))

    def file(self, cell_id: str) -> Path:
        """Where a cell's results are, or will be."""
        return self.cells_folder / f"{cell_id}.parquet"

    def _entries(self) -> dict[str, dict[str, Any]]:
        """The manifest's lines by cell; torn and damaged ones are passed over."""
        try:
            with atomic.reading(self.manifest):
                lines = self.manifest.read_bytes().splitlines()
        except FeelgoodError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                return {}
            raise
        found: dict[str, dict[str, Any]] = {}
        for line in lines:
            try:
                entry = json.loads(line)
                found[str(entry["cell"])] = {**entry, "sha256": str(entry["sha256"])}
            except (ValueError, KeyError, TypeError):
                continue
        return found

    def checksums(self) -> dict[str, str]:
        """SHA-256 of each cell's file, by the manifest."""
        return {cell_id: entry["sha256"] for cell_id, entry in self._entries().items()}

    def present(self) -> set[str]:
        """Cells that have a file, sound or not: quick, for planning."""
        return {name.removesuffix(".parquet") for name in self._names() if _is_cell(name)}

    def _names(self) -> list[str]:
        try:
            return [name for name in os.listdir(self.cells_folder) if not name.startswith(".")]
        except (FileNotFoundError, NotADirectoryError):
            return []

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
                entry = json.dumps(_entry(cell_id, content)).encode()
                atomic.append_line(self.manifest, entry)
        return placed

    def read(self, cell_id: str, checksum: str | None = None) -> AgentResult:
        """One cell's results; a `ValueError` when the file is not what was written."""
        return _open(cell_id, self.file(cell_id).read_bytes(), checksum)[1]

    def _is_sound(self, cell_id: str) -> bool:
        try:
            self.read(cell_id)
        except ValueError:
            return False
        return True

    def verify(self, cell_ids: Iterable[str] | None = None) -> list[Damage]:
        """Check the cells' files; set aside each that is damaged and say so.

        The manifest gets the lines that it lacks. A file that cannot be read is an error: it may
        be sound.
        """
        entries = self._entries()
        wanted = self.present() if cell_ids is None else self.present() & set(cell_ids)
        found = []
        unlisted: list[dict[str, Any]] = []
        for cell_id in sorted(wanted):
            file = self.file(cell_id)
            with atomic.reading(file):
                content = file.read_bytes()
            try:
                if cell_id not in entries:
                    _open(cell_id, content, None)
                    unlisted.append(_entry(cell_id, content))
                elif hashlib.sha256(content).hexdigest() != entries[cell_id]["sha256"]:
                    raise ValueError("its checksum is another")
            except ValueError:
                found.append(self._set_aside(cell_id))
        found += self._mend_manifest(unlisted)
        return found

    def _mend_manifest(self, unlisted: Sequence[dict[str, Any]]) -> list[Damage]:
        """Write a header where it is damaged, and the lines of these cells where they are not."""
        with atomic.reading(self.manifest):
            sound = self._header_is_sound()
        if sound and not unlisted:
            return []
        with self.lock:
            entries = self._entries()
            more = [entry for entry in unlisted if entry["cell"] not in entries]
            if sound:
                for entry in more:
                    atomic.append_line(self.manifest, json.dumps(entry).encode())
                return []
            self._write_manifest([*entries.values(), *more])
        return [Damage(self.manifest, "it was made again from the cells")]

    def _set_aside(self, cell_id: str) -> Damage:
        file = self.file(cell_id)
        kept = self.path / "damaged" / f"{cell_id}-{time.time_ns()}.parquet"
        with self.lock, atomic.reporting(kept):
            kept.parent.mkdir(parents=True, exist_ok=True)
            file.rename(kept)
        return Damage(file, f"it was set aside as {kept} and will be run again")

    def look(self, cells: Iterable[Cell] | None = None) -> Reading:
        """Results of these cells, or of all, each by itself, and what had to be left out."""
        present, sums = self.present(), self.checksums()
        wanted = sorted(present) if cells is None else [c.id for c in cells if c.id in present]
        found: dict[str, AgentResult] = {}
        left_out: dict[str, str] = {}
        for cell_id in wanted:
            try:
                found[cell_id] = self.read(cell_id, sums.get(cell_id))
            except OSError as error:
                left_out[cell_id] = f"cannot be read: {error.strerror or error}"
            except ValueError as error:
                left_out[cell_id] = f"damaged: {error}"
        if cells is not None:
            return Reading(found, left_out)
        foreign = sorted(name for name in self._names() if not _is_cell(name))
        return Reading(found, left_out, tuple(foreign))

    def done(self, cells: Iterable[Cell]) -> Iterator[tuple[Cell, AgentResult]]:
        """The cells among these that are finished, with their results."""
        wanted = list(cells)
        reading = self.look(wanted)
        self.tell(reading)
        yield from ((c, reading.found[c.id]) for c in wanted if c.id in reading.found)

    def results(self, cells: Iterable[Cell] | None = None) -> list[AgentResult]:
        """Results of these cells, or of all; cells that differ in their seeds only are one result.

        Of all cells, those of an earlier version of a plug-in are left out. Whatever is left out,
        `notify` is told.
        """
        reading = self.look(cells)
        if cells is None:
            kept, outdated = _newest_code(reading.found)
            reading = dataclasses.replace(reading, found=kept, outdated=tuple(outdated))
        self.tell(reading)
        found = list(reading.found.values())
        if cells is None:
            found.sort(key=lambda r: (r.testbed, r.agent, r.seeds))
        return merge_seeds(found)

    def tell(self, reading: Reading) -> None:
        """Say what was left out."""
        for sentence in reading.notices():
            self.notify(f"{self.path}: {sentence}")

    def table(self, cells: Iterable[Cell]) -> pa.Table:
        """The rows of these cells as one table."""
        parts = [
            read_parquet(self.file(cell.id).read_bytes()).replace_schema_metadata(None)
            for cell, _ in self.done(cells)
        ]
        # Files of earlier versions lack columns, which are null here.
        return pa.concat_tables([SCHEMA.empty_table(), *parts], promote_options="default")
