"""Reading a log: its whole records, and the rewards joined to the decisions."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from feelgood.core import atomic
from feelgood.core.arguments import parse_path
from feelgood.core.arrow import ipc, pa, pc
from feelgood.core.errors import FeelgoodError
from feelgood.logs.event_schema import Events, check_events, event_schema

DECISION, REWARD = 0, 1
#: The first bytes of an Arrow stream.
STREAM_START = b"\xff\xff\xff\xff"


def record_schema(id_type: pa.DataType) -> pa.Schema:
    """Events and, before them, the kind of the record: 0 for a decision, 1 for a reward."""
    return pa.schema([("kind", pa.int8()), *event_schema(id_type)])


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

    **Example:**

    >>> import feelgood, tempfile
    >>> file = f"{tempfile.mkdtemp()}/decisions.arrow"
    >>> with feelgood.EventLog(file) as log:
    ...     log.decision(1, arm="a", arms=["a", "b"], context=[1.0], probability=0.5)
    ...     log.reward(1, 0.0)
    >>> len(feelgood.read_log(file))
    1
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
