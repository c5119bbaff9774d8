"""A log on disk: a plain Arrow stream that grows, and that a kill cannot damage.

The file is an Arrow IPC stream, which any Arrow library opens. Its records are of two kinds,
decisions and rewards, because rewards come later; `read_log` joins them by id. A record is added
with one write at the end. A kill can therefore leave half a record there, and nothing else: readers
leave it out with a note, and the next writer cuts it off.
"""

import os
import threading
import time as clock
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import filelock
import numpy as np

from feelgood.core import atomic
from feelgood.core.arguments import parse_number, parse_path, parse_whole
from feelgood.core.arrow import pa, pc
from feelgood.core.errors import FeelgoodError, shown
from feelgood.logs.event_schema import SUM_TOLERANCE, Events
from feelgood.logs.log_reading import DECISION, REWARD, record_schema, scan_log


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
    >>> from feelgood import Bandit, EventLog, read_log
    >>> path, seen = tempfile.mkdtemp() + "/decisions.arrow", dict(arms=["a", "b"], context=[1.0])
    >>> with EventLog(path, batch=10) as log:
    ...     log.decision(7, arm="a", probability=0.25, **seen)
    ...     log.reward(7, 1.0)
    ...     log.flush()  # the rest is written by `log.close()`, at the end
    ...     log.decision(8, arm="b", **seen)
    ...     log.unpaid([7, 8]), log.next_id
    ([8], 9)
    >>> read_log(path).table["reward"].to_pylist()
    [1.0, None]
    >>> bandit = Bandit("uniform", arms=["a", "b"], features=1)
    >>> made = [bandit.act([1.0]) for _ in range(2)]
    >>> with EventLog(tempfile.mkdtemp() + "/live.arrow") as log:
    ...     log.record(made[0], [1.0])
    ...     log.record_all([(made[1], [1.0], None)])
    ...     log.reward_all([(d.id, 1.0, 1.0) for d in made])
    ...     log.append(read_log(path))  # whole events, such as those of another log
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
        """Log one decision; `time` is in microseconds since 1970, by default now.

        What a reader would refuse is refused here, so that a log stays readable.
        """
        seen = (context, arm_features)
        self._add([_decision_row(id, arm, arms, *seen, probability, pmf, version, time)])

    def record(self, decision: Any, x: Any, time: int | None = None) -> None:
        """Log a `Decision` of a live bandit for the context `x`; with features of arms, a matrix.

        Arms are logged by the text of their names. Of a matrix the rows of `decision.arms` are
        meant, those of the arms that could be played.
        """
        self.record_all([(decision, x, time)])

    def record_all(self, made: Sequence[tuple[Any, Any, int | None]]) -> None:
        """Log several decisions with contexts and times, all of them or, with an error, none."""
        self._add([_row_of(decision, x, time) for decision, x, time in made])

    def reward(
        self,
        id: int | str | Any,
        reward: float | Any,
        weight: float | Any = 1.0,
        time: int | None = None,
    ) -> None:
        """Log the reward of an earlier decision."""
        self.reward_all([(id, reward, weight)], time)

    def reward_all(self, paid: Sequence[tuple[Any, Any, Any]], time: int | None = None) -> None:
        """Log rewards: ids, rewards and weights; all of them or, with an error, none."""
        self._add([_reward_row(*one, time) for one in paid])

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

    def _add(self, rows: list[tuple[Any, ...]]) -> None:
        with self._mutex:
            if self._file.closed:
                raise FeelgoodError(f"the log {self.path} is closed: open it again.")
            for row in rows:
                whole = isinstance(row[1], (int, np.integer)) and not isinstance(row[1], bool)
                if not whole and not isinstance(row[1], str):
                    raise FeelgoodError(
                        f"id = {shown(row[1])} is not allowed: use a number or a text."
                    )
                self._begin(pa.int64() if whole else pa.string())
            self._rows += rows
            if len(self._rows) >= self._batch:
                try:
                    self.flush()
                except BaseException:  # whoever is told that a record failed may write it again
                    del self._rows[len(self._rows) - len(rows) :]
                    raise

    # ---- what there is already ----------------------------------------------------------

    @property
    def next_id(self) -> int:
        """A number above all ids that are there."""
        with self._mutex:
            self.flush()
            ids = [batch["id"] for batch in self._batches()]
            if ids and not pa.types.is_integer(ids[0].type):
                raise FeelgoodError(
                    f"the log {self.path} has texts as ids, and a bandit numbers its decisions: "
                    "use another file."
                )
            return max((pc.max(part).as_py() for part in ids if len(part)), default=-1) + 1

    def unpaid(self, ids: Sequence[int]) -> list[int]:
        """Those of these decisions that are there without a reward."""
        with self._mutex:
            self.flush()
            batches = self._batches()
            if not batches:
                return []
            records = pa.Table.from_batches(batches)
            records = records.filter(pc.is_in(records["id"], pa.array(ids, pa.int64())))
            found = [
                set(records.filter(pc.equal(records["kind"], kind))["id"].to_pylist())
                for kind in (DECISION, REWARD)
            ]
            return [own for own in ids if own in found[0] - found[1]]

    def _batches(self) -> list[pa.RecordBatch]:
        return scan_log(self.path).batches

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


def _decision_row(
    id: Any,
    arm: Any,
    arms: Any,
    context: Any,
    arm_features: Any,
    probability: Any,
    pmf: Any,
    version: Any,
    time: int | None,
) -> tuple[Any, ...]:
    features = _numbers("arm_features", arm_features, np.float32, 2)
    seen = _numbers("context", context, np.float32, 1)
    chances = _numbers("pmf", pmf, np.float64, 1)
    _check_decision(arm, arms, features, probability, chances)
    row = (DECISION, id, _now(time), seen, features, arm, arms, None, None, probability)
    return (*row, chances, version)


def _row_of(decision: Any, x: Any, time: int | None) -> tuple[Any, ...]:
    """The record of a live bandit's decision."""
    context, features = (None, x) if np.ndim(x) == 2 else (x, None)
    arm, arms = str(decision.arm), [str(arm) for arm in decision.arms]
    chance, pmf, version = decision.probability, decision.pmf, decision.version
    return _decision_row(decision.id, arm, arms, context, features, chance, pmf, version, time)


def _reward_row(id: Any, reward: Any, weight: Any, time: int | None) -> tuple[Any, ...]:
    paid, mass = parse_number("reward", reward), parse_number("weight", weight)
    if mass < 0.0:
        raise FeelgoodError(f"weight = {shown(weight)} is not allowed: use at least 0.")
    row = (REWARD, id, _now(time), None, None, None, None, paid, mass)
    return (*row, None, None, None)


def _numbers(name: str, given: Any, kind: type, axes: int) -> np.ndarray | None:
    """An array of finite numbers, or None."""
    if given is None:
        return None
    try:
        array: np.ndarray | None = np.asarray(given, kind)
    except (TypeError, ValueError):
        array = None
    if array is None or array.ndim != axes or not np.isfinite(array).all():
        how = "one axis" if axes == 1 else f"{axes} axes"
        raise FeelgoodError(
            f"{name} = {shown(given)} is not allowed: use finite numbers with {how}."
        )
    return array


def _check_decision(
    arm: Any,
    arms: Any,
    features: np.ndarray | None,
    probability: Any,
    pmf: np.ndarray | None,
) -> None:
    """Refuse a decision that contradicts itself."""
    names = list(arms)
    if not all(isinstance(name, str) for name in names) or names.count(arm) != 1:
        raise FeelgoodError(f"arm = {shown(arm)} is not once among the texts {shown(arms)}.")
    for name, rows in (("pmf", pmf), ("arm_features", features)):
        if rows is not None and len(rows) != len(names):
            raise FeelgoodError(
                f"{name} has {len(rows)} rows for {len(names)} arms: give one for each."
            )
    if probability is not None and not 0.0 < parse_number("probability", probability) <= 1.0:
        raise FeelgoodError(
            f"probability = {shown(probability)} is not allowed: use above 0 and at most 1."
        )
    if pmf is not None:
        own = pmf[names.index(arm)]
        if (pmf < 0).any() or abs(float(pmf.sum()) - 1.0) > SUM_TOLERANCE:
            raise FeelgoodError(f"pmf = {shown(pmf)} does not add up to 1: give probabilities.")
        if probability is not None and abs(own - probability) > SUM_TOLERANCE:
            raise FeelgoodError(f"probability = {shown(probability)}, and pmf says {own:.6g}.")


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
