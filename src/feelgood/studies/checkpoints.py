"""Progress of one batch on disk, so that a killed run goes on from its last segment."""

import hashlib
import io
import time
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO

import numpy as np

from feelgood.studies import atomic

#: Saving may take this share of the time at most.
SHARE = 0.05


class FolderCheckpoints:
    """Checkpoints as `.npz` files in a folder, one a group of chains, each with its SHA-256.

    A group is saved when `every` seconds have passed since the last time, and less often where
    saving is slow. A file that is damaged counts as absent: its group starts again.
    """

    def __init__(self, folder: Path, every: float = 20.0) -> None:
        self.folder = folder
        self.every = every
        self._next: dict[str, float] = {}
        self._prefix = ""

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
            content = self._file(group).read_bytes()
            digest, body = content[:32], content[32:]
            if hashlib.sha256(body).digest() != digest:
                return None
            with np.load(io.BytesIO(body), allow_pickle=False) as saved:
                return {name: saved[name] for name in saved.files}
        except (OSError, ValueError, KeyError, zipfile.BadZipFile):
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
        buffer = io.BytesIO()
        np.savez(buffer, allow_pickle=False, **arrays)
        body = buffer.getbuffer()
        digest = hashlib.sha256(body).digest()

        def fill(file: IO[bytes]) -> None:
            file.write(digest)
            file.write(body)

        atomic.write(self._file(group), fill)
        now = time.monotonic()
        self._next[self._key(group)] = now + max(self.every, (now - began) / SHARE)
