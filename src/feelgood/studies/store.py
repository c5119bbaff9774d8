"""What was run: a folder of Parquet files, one per cell, and a manifest.

    manifest.jsonl      what this folder is; then one line per cell with its checksum
    cells/ID.parquet    one row per seed; opens in pandas, polars or DuckDB without our code
    work/               batches in progress: plans, locks, checkpoints
    damaged/            files that failed their checksum, kept for inspection

A cell's file appears whole, by one rename, and is never overwritten. The manifest only grows. A
cell counts as done when its file is there and has the checksum that the manifest gives. After a
crash between the two, it counts when its file can be read and holds what its name says.
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

from feelgood.core import atomic
from feelgood.core.arguments import parse_path
from feelgood.core.arrow import pa
from feelgood.core.errors import FeelgoodError
from feelgood.core.notices import print_notice
from feelgood.core.parquet import read_parquet
from feelgood.engine.results import AgentResult
from feelgood.studies.cells import cell_schema, open_cell, to_bytes
from feelgood.studies.folder_parts import complete_parts
from feelgood.studies.locks import Lock
from feelgood.studies.merging import merge_seeds, newest_code
from feelgood.studies.planning import Cell

#: A later format must be visible in the cells' files too: a store whose manifest has lost its
#: header is known by them.
FORMAT = 1
_HEADER = {"feelgood-store": FORMAT}
_CELL_FILE = re.compile(r"[0-9a-f]{24}\.parquet")


def _is_cell(name: str) -> bool:
    return _CELL_FILE.fullmatch(name) is not None


def _entry(cell_id: str, content: bytes) -> dict[str, Any]:
    """A cell's line in the manifest."""
    return {
        "cell": cell_id,
        "sha256": hashlib.sha256(content).hexdigest(),
        "bytes": len(content),
    }


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

    **Example:**

    >>> import tempfile
    >>> from feelgood.studies import Store, Study, plan_cells, run_study
    >>> cells = tuple(plan_cells("linear-20", "uniform", rounds=50, seeds=2))
    >>> store = Store(tempfile.mkdtemp() + "/results")
    >>> _ = run_study(Study("mine", cells), store, workers=1)
    >>> [result.agent for result in store.results()], store.verify()
    (['uniform'], [])
    """

    def __init__(
        self,
        path: str | Path | Any,
        *,
        create: bool = True,
        notify: Callable[[str], None] = print_notice,
    ) -> None:
        self.path = parse_path(path, "folder")
        self.notify = notify
        self.cells_folder = self.path / "cells"
        self.work_folder = self.path / "work"
        self.manifest = self.path / "manifest.jsonl"
        self.lock = Lock(self.path / "work" / "store.lock")
        complete_parts(self.path)
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
        return open_cell(cell_id, self.file(cell_id).read_bytes(), checksum)[1]

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
                    open_cell(cell_id, content, None)
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
            kept, outdated = newest_code(reading.found)
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
        return pa.concat_tables([cell_schema().empty_table(), *parts], promote_options="default")
