"""A journal: every decision and reward is on disk before the call returns.

A folder with `state.fg`, a saved bandit, and the file that it names, to which records are appended.
When that file is longer than the state is worth, the state is saved anew with a new, empty file.
A record has its length and a checksum, so that what a kill has cut off is known.
"""

import json
import os
import struct
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from filelock import FileLock, Timeout

from feelgood.core import atomic
from feelgood.core.errors import FeelgoodError, shown

STATE = "state.fg"
_FRAME = struct.Struct("<IIB")
_DECIDED, _REWARDED, _OBSERVED = struct.Struct("<qdI"), struct.Struct("<qdd"), struct.Struct("<Idd")
#: Bytes of records after which the state is saved anew, besides four times its own size.
_LONG = 1_000_000
#: Seconds after which the next call makes sure that batched records are on disk.
BATCH_SECONDS = 0.1


class Record(NamedTuple):
    """One record: what happened, its numbers, and a context or a name."""

    kind: str
    numbers: tuple[Any, ...]
    more: Any = None


class Journal:
    """Writes records; not for several threads at once."""

    def __init__(self, folder: Path, fsync: Any) -> None:
        if fsync not in ("always", "batched"):
            raise FeelgoodError(
                f"fsync = {shown(fsync)} is not allowed: use 'always' or 'batched'."
            )
        self.folder, self.fsync = folder, fsync
        with atomic.reporting(folder):
            folder.mkdir(parents=True, exist_ok=True)
        self._lock = FileLock(folder / "lock")
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            raise FeelgoodError(
                f"the journal {folder} is in use by another bandit: close that one first."
            ) from None
        self._file: int | None = None
        self._next: int | None = None
        self._next_name = ""
        self._waiting: list[bytes] = []
        self._length, self._worth, self._synced = 0, _LONG, time.monotonic()
        self._before = 0

    # ---- records ------------------------------------------------------------------------

    def decided(self, own: int, moment: float, slot: int, context: np.ndarray) -> None:
        """A decision."""
        self._add(b"D", _DECIDED.pack(own, moment, slot) + context.tobytes())

    def rewarded(self, own: int, reward: float, weight: float) -> None:
        """A reward of a decision."""
        self._add(b"R", _REWARDED.pack(own, reward, weight))

    def observed(self, slot: int, reward: float, weight: float, context: np.ndarray) -> None:
        """A reward that was no decision's."""
        self._add(b"L", _OBSERVED.pack(slot, reward, weight) + context.tobytes())

    def expired(self, ids: list[int]) -> None:
        """Decisions that were given up."""
        self._add(b"E", np.asarray(ids, np.int64).tobytes())

    def removed(self, label: Any) -> None:
        """An arm that went."""
        self._add(b"X", json.dumps(label).encode())

    def _add(self, kind: bytes, payload: bytes) -> None:
        whole = kind + payload
        self._waiting.append(_FRAME.pack(len(payload), zlib.crc32(whole), kind[0]) + payload)

    def commit(self) -> None:
        """Records to disk, or an error and none of them."""
        content, self._waiting = b"".join(self._waiting), []
        assert self._file is not None
        with atomic.reporting(self.folder):
            try:
                _write(self._file, content)
                now = time.monotonic()
                if self.fsync == "always" or now - self._synced > BATCH_SECONDS:
                    os.fsync(self._file)
                    self._synced = now
            except OSError:
                self._cut(self._length)
                raise
        self._before = self._length
        self._length += len(content)

    def take_back(self) -> None:
        """What the last `commit` wrote has not happened."""
        with atomic.reporting(self.folder):
            self._cut(self._before)
        self._length = self._before

    def _cut(self, length: int) -> None:
        assert self._file is not None
        os.ftruncate(self._file, length)
        os.lseek(self._file, length, os.SEEK_SET)

    @property
    def is_long(self) -> bool:
        """Whether the state should be saved anew."""
        return self._length > self._worth

    # ---- the folder ---------------------------------------------------------------------

    def begin(self) -> str:
        """A new, empty file of records, which is used from `go_on` on; its name."""
        there = [int(file.name.split("-")[1]) for file in self.folder.glob("records-*")]
        self._next_name = f"records-{max(there, default=0) + 1}"
        flags = os.O_CREAT | os.O_TRUNC | os.O_RDWR | getattr(os, "O_BINARY", 0)
        with atomic.reporting(self.folder):
            self._next = os.open(self.folder / self._next_name, flags, 0o600)
            os.fsync(self._next)
        return self._next_name

    def give_up(self) -> None:
        """The new file is not needed: its state was not saved."""
        if self._next is not None:
            os.close(self._next)
            (self.folder / self._next_name).unlink(missing_ok=True)
            self._next = None

    def go_on(self, state_bytes: int) -> None:
        """With the new file: all older records are in the saved state."""
        if self._file is not None:
            os.close(self._file)
        self._file, self._next = self._next, None
        self._length = self._before = 0
        self._synced = time.monotonic()
        self._worth = _LONG + 4 * state_bytes
        for file in self.folder.glob("records-*"):
            if file.name != self._next_name:
                file.unlink(missing_ok=True)

    def close(self) -> None:
        """All on disk, and the folder free for others."""
        if self._file is not None:
            with atomic.reporting(self.folder):
                os.fsync(self._file)
                os.close(self._file)
            self._file = None
        self._lock.release()


def _write(file: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(file, view) :]


def read_records(path: Path) -> Iterator[Record]:
    """The records of a file, but for one that was cut off at its end."""
    if not path.exists():
        raise FeelgoodError(f"{path} is missing: the journal is not whole, use a copy of it.")
    with atomic.reading(path):
        content = path.read_bytes()
    at = 0
    while at + _FRAME.size <= len(content):
        length, check, kind = _FRAME.unpack_from(content, at)
        start, end = at + _FRAME.size, at + _FRAME.size + length
        if end > len(content):
            return
        payload = content[start:end]
        if zlib.crc32(bytes([kind]) + payload) != check:
            if content[end:].strip(b"\0"):
                raise FeelgoodError(f"{path} is damaged at byte {at}: use a copy of the journal.")
            return
        yield _record(chr(kind), payload)
        at = end


def _record(kind: str, payload: bytes) -> Record:
    if kind in "DL":
        form = _DECIDED if kind == "D" else _OBSERVED
        context = np.frombuffer(payload[form.size :], np.float32).copy()
        return Record(kind, form.unpack_from(payload), context)
    if kind == "R":
        return Record(kind, _REWARDED.unpack(payload))
    if kind == "E":
        return Record(kind, tuple(np.frombuffer(payload, np.int64).tolist()))
    return Record(kind, (), json.loads(payload))
