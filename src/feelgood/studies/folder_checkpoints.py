"""Progress of one batch on disk, so that a killed run goes on from its last segment."""

import dataclasses
import hashlib
import io
import time
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, cast

import numpy as np

from feelgood.core import atomic
from feelgood.engine import compiling

#: Saving may take this share of the time at most.
_SHARE = 0.05
#: Bytes of a SHA-256, and bytes that are read at a time.
_DIGEST, _CHUNK = 32, 16 * 2**20
#: Under this name it is saved what the progress has cost.
_COST = "cost"


@dataclasses.dataclass(frozen=True)
class TimeSpent:
    """When some work began, and the seconds that it took, in all and to compile."""

    started: float
    seconds: float
    compile_s: float


class _Hashed:
    """A file that is written from front to back while its SHA-256 is taken.

    The state of many chains on an accelerator can be as large as the host's memory: it goes to
    the disk array by array, never as one piece.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.sha256 = hashlib.sha256()

    def write(self, data: Any) -> int:
        self.sha256.update(data)
        return self._file.write(data)

    def read(self, size: int = -1) -> bytes:
        raise io.UnsupportedOperation(f"cannot read {size} bytes of a file being written")

    def flush(self) -> None:
        self._file.flush()


class FolderCheckpoints:
    """Checkpoints as `.npz` files in a folder, one per group of chains, each with its SHA-256.

    A group is saved when `every` seconds have passed since the last time, and less often where
    saving is slow. A file that is damaged counts as absent: its group starts again.

    Each file tells what all groups have cost until then, so that a run that goes on knows what
    was spent before it.
    """

    def __init__(self, folder: Path, every: float = 20.0) -> None:
        self.folder = folder
        self.every = every
        self._next: dict[str, float] = {}
        self._prefix = ""
        #: What earlier runs have spent whose progress was loaded.
        self.before = TimeSpent(time.time(), 0.0, 0.0)
        self._began, self._compiled = time.monotonic(), compiling.seconds_spent()

    @property
    def cost(self) -> TimeSpent:
        """What it took to come so far, in this run and in those before."""
        seconds = time.monotonic() - self._began
        compile_s = compiling.seconds_spent() - self._compiled
        before = self.before
        return TimeSpent(before.started, before.seconds + seconds, before.compile_s + compile_s)

    def of(self, part: str) -> "FolderCheckpoints":
        """The same folder, under names that start with `part`."""
        other = FolderCheckpoints(self.folder, self.every)
        other._prefix = f"{part}-"
        return other

    def _file(self, group: int) -> Path:
        return self.folder / f"{self._prefix}{group}.npz"

    def load(self, group: int) -> Mapping[str, np.ndarray] | None:
        """What was saved last for this group."""
        self._next[self._key(group)] = time.monotonic() + self.every
        try:
            with self._file(group).open("rb") as file:
                digest, found = file.read(_DIGEST), hashlib.sha256()
                while chunk := file.read(_CHUNK):
                    found.update(chunk)
                if found.digest() != digest:
                    return None
                file.seek(_DIGEST)
                with np.load(file, allow_pickle=False) as saved:
                    arrays = {name: saved[name] for name in saved.files}
            if _COST in arrays:
                # The file that was saved last knows the most.
                spent = TimeSpent(*map(float, arrays.pop(_COST)))
                self.before = max(self.before, spent, key=lambda cost: cost.seconds)
            return arrays
        except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile):
            return None

    def _key(self, group: int) -> str:
        return f"{self._prefix}{group}"

    def due(self, group: int) -> bool:
        """Whether it is time to save."""
        return time.monotonic() >= self._next.setdefault(
            self._key(group), time.monotonic() + self.every
        )

    def save(self, group: int, arrays: Mapping[str, np.ndarray]) -> None:
        """Replace what was saved before, atomically."""
        began = time.monotonic()

        def fill(file: IO[bytes]) -> None:
            file.write(bytes(_DIGEST))
            body = _Hashed(file)
            cost = np.array(dataclasses.astuple(self.cost))
            np.savez(cast(IO[bytes], body), allow_pickle=False, **{**arrays, _COST: cost})
            file.seek(0)
            file.write(body.sha256.digest())

        atomic.write(self._file(group), fill)
        now = time.monotonic()
        self._next[self._key(group)] = now + max(self.every, (now - began) / _SHARE)
