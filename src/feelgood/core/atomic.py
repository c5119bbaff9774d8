"""Files that are whole or not there."""

import contextlib
import errno
import glob
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from feelgood.core.errors import FeelgoodError

_FULL = (errno.ENOSPC, errno.EDQUOT)


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


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A place beside `path` for a new file, which becomes `path` when the block ends well."""
    with _beside(path) as temporary:
        yield temporary
        temporary.replace(path)


@contextlib.contextmanager
def _beside(path: Path) -> Iterator[Path]:
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)


def write(path: Path, fill: Callable[[IO[bytes]], object], *, replace: bool = True) -> bool:
    """Write a file so that at every instant it is the old one, or the new one, whole and on disk.

    With `replace=False` a file that is there already is left alone; returns whether ours was put.
    """
    with reporting(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with _beside(path) as temporary:
            with temporary.open("wb") as file:
                fill(file)
                file.flush()
                os.fsync(file.fileno())
            if replace:
                temporary.replace(path)
            elif not _put_new(temporary, path):
                return False
        _sync_folder(path.parent)
        return True


def _put_new(temporary: Path, path: Path) -> bool:
    """Give a file its name unless that is taken; whether it was given."""
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
    return True


def remove_leftovers(folder: Path, of: str = "*") -> None:
    """Delete what killed writers of such files left; only for who alone may write them now."""
    for left in folder.glob(f".{of}[.-]*.tmp"):
        if left.is_dir() and not left.is_symlink():
            shutil.rmtree(left, ignore_errors=True)
        with contextlib.suppress(OSError):
            left.unlink()


def remove_leftovers_of_the_dead(path: Path) -> None:
    """Delete what processes that were killed while they wrote this file have left."""
    if os.name == "nt":
        return  # whether a process is there cannot be asked in this way
    for file in path.parent.glob(f".{glob.escape(path.name)}.*.tmp"):
        number = file.name.split(".")[-2]
        try:
            os.kill(int(number), 0)
        except ProcessLookupError:
            file.unlink(missing_ok=True)
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
