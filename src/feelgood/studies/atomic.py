"""Files that are whole or not there, and locks that die with their holder."""

import contextlib
import errno
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import filelock

from feelgood.errors import FeelgoodError

_FULL = (errno.ENOSPC, errno.EDQUOT)
_NO_LOCKS = (errno.ENOSYS, errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP)


class LostWrite(FeelgoodError):
    """The store could not be written: a full disk, a folder taken away, no permission."""


def _remedy(error: OSError, usual: str) -> str:
    if error.errno in _FULL:
        return "free some space"
    return "choose a shorter path" if error.errno == errno.ENAMETOOLONG else usual


@contextlib.contextmanager
def reporting(path: Path) -> Iterator[None]:
    """Turns an error of the system into one sentence about `path`."""
    try:
        yield
    except OSError as error:
        raise LostWrite(
            f"cannot write {path} ({error.strerror or error}): "
            f"{_remedy(error, 'check the folder')} and run the same command again; what is "
            "finished is kept."
        ) from error


@contextlib.contextmanager
def reading(path: Path) -> Iterator[None]:
    """The same for what is read."""
    try:
        yield
    except OSError as error:
        raise FeelgoodError(
            f"cannot read {error.filename or path} ({error.strerror or error}): "
            f"{_remedy(error, 'make it readable')} and run the same command again; nothing was "
            "changed."
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


def remove_leftovers(folder: Path, of: str = "*") -> None:
    """Delete what killed writers of such files left; only for who alone may write them now."""
    for left in folder.glob(f".{of}[.-]*.tmp"):
        if left.is_dir() and not left.is_symlink():
            shutil.rmtree(left, ignore_errors=True)
        with contextlib.suppress(OSError):
            left.unlink()


def remove_of_the_dead(folder: Path, of: str) -> None:
    """The same where others may be writing such files: only what processes that are gone left."""
    if os.name == "nt":
        return  # whether a process is there cannot be asked in this way
    for left in folder.glob(f".{of}.*.tmp"):
        try:
            os.kill(int(left.name.split(".")[-2]), 0)
        except ProcessLookupError:
            left.unlink(missing_ok=True)
        except (ValueError, OverflowError, OSError):
            continue  # not one of ours, or of somebody else


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
    """Names on disk too, where a folder can be opened: on Windows it cannot."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class Lock:
    """An exclusive lock on a file. The system releases it when the process ends, however."""

    def __init__(self, path: Path) -> None:
        self.path = path
        # A lock that outlives its holder would be worse than none: no such substitute.
        self._lock = filelock.FileLock(path, thread_local=False, fallback_to_soft=False)

    def take(self, *, wait: bool) -> bool:
        """Take the lock; without `wait`, False when somebody else has it."""
        with reporting(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            try:
                self._lock.acquire(timeout=-1 if wait else 0)
            except filelock.Timeout:
                return False
            except OSError as error:
                if error.errno not in _NO_LOCKS:
                    raise
                raise FeelgoodError(
                    f"{self.path.parent} lies on a file system without locks "
                    f"({error.strerror or error}): choose a folder on another one."
                ) from error
        return True

    def release(self) -> None:
        """Give the lock back."""
        self._lock.release(force=True)

    def __enter__(self) -> "Lock":
        self.take(wait=True)
        return self

    def __exit__(self, *exc: object) -> None:
        self.release()
