"""A log on disk: a plain Arrow stream that grows, and that a kill cannot damage.

The file is an Arrow IPC stream, which any Arrow library opens. Its records are of two kinds,
decisions and rewards, because rewards come later; `read_log` joins them by id. A record is added
with one write at the end. A kill can therefore leave half a record there, and nothing else: readers
leave it out with a note, and the next writer cuts it off.
"""

import os
import threading
import time as clock
from pathlib import Path
from typing import Any, NamedTuple

import filelock
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import ipc

from feelgood.core import atomic
from feelgood.core.arguments import parse_number, parse_path, parse_whole
from feelgood.core.errors import FeelgoodError, shown
from feelgood.logs.event_schema import Events, check_events, event_schema

DECISION, REWARD = 0, 1
#: The first bytes of an Arrow stream.
STREAM_START = b"\xff\xff\xff\xff"


def record_schema(id_type: pa.DataType) -> pa.Schema:
    """Events and, before them, the kind of the record: 0 for a decision, 1 for a reward."""
    return pa.schema([("kind", pa.int8()), *event_schema(id_type)])


class EventLog:
    """Writes decisions and rewards to a file as they happen; one writer at a time, any thread.

    **Arguments:**

    - `path`: the file; one that is there is continued.
    - `batch`: records that are gathered before they are written together. With 1, a record is with
      the operating system before the call returns. With more, calls cost less, and a kill loses
      the records that were still gathered, fewer than `batch`; `flush` writes them at once.
    - `sync`: wait until the disk has them, so that they survive a loss of power too.

    **Example:**

    >>> import tempfile
    >>> from feelgood.logs.event_log import EventLog, read_log
    >>> path = tempfile.mkdtemp() + "/decisions.arrow"
    >>> with EventLog(path) as log:
    ...     log.decision(7, arm="a", arms=["a", "b"], context=[0.5, 1.0], probability=0.25)
    ...     log.reward(7, 1.0)
    >>> read_log(path).table["reward"].to_pylist()
    [1.0]
    """

    def __init__(self, path: Any, *, batch: Any = 1, sync: Any = False) -> None:
        self.path = parse_path(path, "log")
        self._batch = parse_whole("batch", batch, 1, 1_000_000)
        self._sync = bool(sync)
        self._rows: list[tuple[Any, ...]] = []
        self._mutex = threading.RLock()
        self._schema: pa.Schema | None = None
        with atomic.reporting(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._lock = _lock_of(self.path)
            try:
                self._open()
            except BaseException:
                self._lock.release()
                raise

    def _open(self) -> None:
        """Take up the schema of a file that is there; half a record that a kill left is cut off."""
        self._end = 0
        torn = False
        if self.path.exists():
            whole = scan_log(self.path)
            self._schema, self._end, torn = whole.schema, whole.end, whole.end < whole.size
        self._file = self.path.open("ab", buffering=0)
        if torn:
            self._file.truncate(self._end)

    def decision(
        self,
        id: int | str | Any,
        *,
        arm: str | Any,
        arms: Any,
        context: Any = None,
        arm_features: Any = None,
        probability: float | Any | None = None,
        pmf: Any = None,
        version: int | Any | None = None,
        time: int | None = None,
    ) -> None:
        """Log one decision; `time` is in microseconds since 1970, by default now."""
        if not isinstance(arm, str) or arm not in arms:
            raise FeelgoodError(f"arm = {shown(arm)} is not among the arms {shown(arms)}.")
        features = None if arm_features is None else np.asarray(arm_features, np.float32)
        seen = None if context is None else np.asarray(context, np.float32).ravel()
        chances = None if pmf is None else np.asarray(pmf, np.float64).ravel()
        row = (DECISION, id, _now(time), seen, features, arm, arms, None, None, probability)
        self._add((*row, chances, version))

    def reward(
        self,
        id: int | str | Any,
        reward: float | Any,
        weight: float | Any = 1.0,
        time: int | None = None,
    ) -> None:
        """Log the reward of an earlier decision."""
        paid, mass = parse_number("reward", reward), parse_number("weight", weight)
        row = (REWARD, id, _now(time), None, None, None, None, paid, mass)
        self._add((*row, None, None, None))

    def append(self, events: Events) -> None:
        """Add whole events, with the rewards that they have."""
        with self._mutex:
            self.flush()
            self._begin(events.table.schema.field("id").type)
            kinds = pa.array(np.full(len(events), DECISION, np.int8))
            table = events.table.add_column(0, "kind", kinds).combine_chunks()
            for batch in table.to_batches():
                self._write(batch.serialize())

    def flush(self) -> None:
        """Write what is gathered."""
        with self._mutex:
            if self._rows:
                assert self._schema is not None
                columns = zip(*self._rows, strict=True)
                arrays = [_array(c, f.type) for c, f in zip(columns, self._schema, strict=True)]
                batch = pa.RecordBatch.from_arrays(arrays, schema=self._schema)
                self._write(batch.serialize())
                self._rows.clear()

    def close(self) -> None:
        """Write what is gathered and close the file."""
        with self._mutex:
            if not self._file.closed:
                self.flush()
                self._file.close()
                self._lock.release()

    def __enter__(self) -> "EventLog":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _add(self, row: tuple[Any, ...]) -> None:
        with self._mutex:
            if self._file.closed:
                raise FeelgoodError(f"the log {self.path} is closed: open it again.")
            id_ = row[1]
            whole = isinstance(id_, (int, np.integer)) and not isinstance(id_, bool)
            if not whole and not isinstance(id_, str):
                raise FeelgoodError(f"id = {shown(id_)} is not allowed: use a number or a text.")
            self._begin(pa.int64() if whole else pa.string())
            self._rows.append(row)
            if len(self._rows) >= self._batch:
                try:
                    self.flush()
                except BaseException:  # whoever is told that a record failed may write it again
                    self._rows.pop()
                    raise

    def _begin(self, id_type: pa.DataType) -> None:
        """The schema, at the head of a new file; ids stay of one kind."""
        if self._schema is None:
            self._schema = record_schema(id_type)
            self._write(self._schema.serialize())
        elif self._schema.field("id").type != id_type:
            raise FeelgoodError(
                f"the log {self.path} has ids of the type {self._schema.field('id').type}, not "
                f"{id_type}: use ids of one kind, or another file."
            )

    def _write(self, content: Any) -> None:
        """Add bytes at the end: all of them, or after a full disk none."""
        with atomic.reporting(self.path):
            view = memoryview(content)
            done = 0
            try:
                while done < len(view):
                    done += self._file.write(view[done:]) or 0
                if self._sync:
                    os.fsync(self._file.fileno())
            except OSError:
                self._file.truncate(self._end)
                raise
            self._end += done


def _now(time: int | None) -> int:
    return clock.time_ns() // 1_000 if time is None else time


def _lock_of(path: Path) -> filelock.BaseFileLock:
    lock = filelock.FileLock(path.with_name(f".{path.name}.lock"), timeout=0, thread_local=False)
    try:
        lock.acquire()
    except filelock.Timeout:
        raise FeelgoodError(
            f"the log {path} is being written by someone else: close it there, or use another file."
        ) from None
    return lock


def _array(values: tuple[Any, ...], kind: pa.DataType) -> pa.Array:
    """Values of several records as a column; matrices become lists of rows."""
    if pa.types.is_list(kind) and pa.types.is_list(kind.value_type):
        values = tuple(None if v is None else list(v) for v in values)
    return pa.array(values, kind)


class ScannedLog(NamedTuple):
    """The whole records of a file: their schema, the batches, and where the last one ends."""

    schema: pa.Schema | None
    batches: list[pa.RecordBatch]
    end: int
    size: int


def scan_log(path: Path) -> ScannedLog:
    """All whole records; what a kill has torn at the end is left out."""
    with atomic.reading(path):
        size = path.stat().st_size
        if not size:
            return ScannedLog(None, [], 0, 0)
        with path.open("rb") as file:
            start = file.read(4)
        if start != STREAM_START[: len(start)]:
            raise FeelgoodError(f"{path} is no log of decisions: it is no Arrow stream.")
        with pa.memory_map(str(path)) as source:
            return _scan(path, source, size)


def _scan(path: Path, source: Any, size: int) -> ScannedLog:
    schema, batches, end = None, [], 0
    try:
        while end < size:
            message = ipc.read_message(source)
            if schema is None:
                schema = ipc.read_schema(message)
            else:
                batches.append(ipc.read_record_batch(message, schema))
            end = source.tell()
    except (pa.ArrowException, EOFError, OSError):
        _refuse_damage(path, source, end, size)
    if schema is not None:
        known = schema.names == record_schema(pa.int64()).names
        if not known or schema != record_schema(schema.field("id").type):
            raise FeelgoodError(
                f"{path} is an Arrow stream with other columns: read it as a frame."
            )
    return ScannedLog(schema, batches, end, size)


def _refuse_damage(path: Path, source: Any, end: int, size: int) -> None:
    """A kill tears the last record only: where whole ones follow, something else broke the file."""
    source.seek(end)
    rest = source.read(size - end)
    start = rest.find(STREAM_START, 1)
    while start >= 0:
        try:
            ipc.read_message(pa.BufferReader(rest[start:]))
        except (pa.ArrowException, EOFError, OSError):
            start = rest.find(STREAM_START, start + 1)
            continue
        raise FeelgoodError(
            f"{path} is damaged at byte {end:,}, and whole records follow: restore it from a copy."
        )


def read_log(path: Any) -> Events:
    """The events of a log: every decision with its reward, if that has come.

    Notes say what was left out: half a record at the end, rewards of unknown decisions, second
    rewards and second decisions of one id.
    """
    file = parse_path(path, "log")
    scanned = scan_log(file)
    notes = []
    if scanned.end < scanned.size:
        notes.append(
            f"The last {scanned.size - scanned.end:,} bytes of {file} are half a record, as a kill "
            "leaves it: left out."
        )
    if not scanned.batches or scanned.schema is None:
        raise FeelgoodError(f"{file} has no decisions: give a log with at least one.")
    records = pa.Table.from_batches(scanned.batches, scanned.schema).combine_chunks()
    try:
        records.validate(full=True)
    except pa.ArrowException:
        raise FeelgoodError(f"{file} is damaged: restore it from a copy.") from None
    table = _joined(records, str(file), notes)
    check_events(table, str(file))
    return Events(table, tuple(notes))


def _joined(records: pa.Table, called: str, notes: list[str]) -> pa.Table:
    """Decisions with the rewards that came for them."""
    decisions = records.filter(pc.equal(records["kind"], DECISION)).drop_columns(["kind"])
    if not decisions.num_rows:
        raise FeelgoodError(f"{called} has no decisions: give a log with at least one.")
    late = records.filter(pc.equal(records["kind"], REWARD))
    first = _firsts(decisions["id"])
    if len(first) < decisions.num_rows:
        notes.append(f"{decisions.num_rows - len(first):,} decisions repeat an id: left out.")
        decisions = decisions.take(pa.array(first))
    place = pc.index_in(late["id"], value_set=decisions["id"].combine_chunks())
    known = ~np.asarray(place.is_null().to_numpy(zero_copy_only=False))
    if not known.all():
        notes.append(f"{int((~known).sum()):,} rewards belong to no decision: left out.")
    rows = np.asarray(pc.fill_null(place, -1).to_numpy(zero_copy_only=False))[known]
    paid = late["reward"].to_numpy()[known]
    mass = late["weight"].to_numpy()[known]
    out = Events(decisions)
    rewards, weights = out.numbers("reward").copy(), out.numbers("weight").copy()
    fresh, which = np.unique(rows, return_index=True)
    unpaid = np.isnan(rewards[fresh])
    second = len(rows) - int(unpaid.sum())
    if second:
        notes.append(f"{second:,} rewards came for decisions that had one: left out.")
    fresh, which = fresh[unpaid], which[unpaid]
    rewards[fresh], weights[fresh] = paid[which], mass[which]
    weights[np.isnan(weights)] = 1.0
    for name, values in (("reward", rewards), ("weight", weights)):
        column = pa.array(values, pa.float64(), mask=np.isnan(values))
        decisions = decisions.set_column(decisions.column_names.index(name), name, column)
    return decisions


def _firsts(ids: pa.ChunkedArray) -> np.ndarray:
    """The rows where an id comes for the first time."""
    codes = ids.combine_chunks().dictionary_encode().indices.to_numpy(zero_copy_only=False)
    return np.sort(np.unique(codes, return_index=True)[1])
