"""Files that are whole or not there, and locks that die with their holder."""

import contextlib
import errno
import fcntl
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from feelgood.errors import FeelgoodError


class LostWrite(FeelgoodError):
    """The store could not be written: a full disk, a folder taken away, no permission."""


@contextlib.contextmanager
def reporting(path: Path) -> Iterator[None]:
    """Turns an error of the system into one sentence about `path`."""
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        remedy = "free some space" if full else "check the folder"
        raise LostWrite(
            f"cannot write {path} ({error.strerror or error}): {remedy} and run the same command "
            "again; what is finished is kept."
        ) from error


def write(path: Path, fill: Callable[[IO[bytes]], object], *, replace: bool = True) -> bool:
    """Write a file so that at every instant it is the old one, or the new one, whole and on disk.

    With `replace=False` a file that is there already is left alone; returns whether ours was put.
    """
    with reporting(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        try:
            with temporary.open("wb") as file:
                fill(file)
                file.flush()
                os.fsync(file.fileno())
            if replace:
                temporary.replace(path)
            else:
                try:
                    os.link(temporary, path)
                except FileExistsError:
                    return False
                except OSError as error:
                    if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.ENOSYS):
                        raise
                    # A file system without hard links: callers hold the store's lock.
                    if path.exists():
                        return False
                    temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
        _sync_folder(path.parent)
        return True


def append_line(path: Path, line: bytes) -> None:
    """Add one line; a half-written last line, left by a crash, is closed off first."""
    with reporting(path), path.open("a+b") as file:
        end = file.seek(0, os.SEEK_END)
        torn = b""
        if end:
            file.seek(end - 1)
            torn = b"" if file.read(1) == b"\n" else b"\n"
        try:
            file.write(torn + line + b"\n")
            file.flush()
            os.fsync(file.fileno())
        except OSError:
            os.ftruncate(file.fileno(), end)
            raise


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class Lock:
    """An exclusive lock on a file. The system releases it when the process ends, however."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: IO[bytes] | None = None

    def take(self, *, wait: bool) -> bool:
        """Take the lock; without `wait`, False when somebody else has it."""
        with reporting(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            file = self.path.open("ab")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            file.close()
            return False
        self._file = file
        return True

    def release(self) -> None:
        """Give the lock back."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def __enter__(self) -> "Lock":
        self.take(wait=True)
        return self

    def __exit__(self, *exc: object) -> None:
        self.release()
