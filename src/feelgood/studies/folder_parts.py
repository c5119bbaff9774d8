"""Several parts of a folder replaced as one: whenever the process is killed, all of them or none.

    .feelgood-PID.tmp    the new parts while they are written; not yet results
    .feelgood-ready      the new parts, whole: from here on they are the folder's results
    .feelgood.lock       held by who writes any of this; gone afterwards

Who opens a folder in which ready parts lie puts them into their places first.
"""

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from feelgood.core import atomic
from feelgood.studies.locks import Lock

_LOCK, _STAGING, _READY = ".feelgood.lock", "feelgood", ".feelgood-ready"
#: Comes last: a folder with a manifest and without the other parts would be a study's.
_LAST = "manifest.jsonl"


@contextlib.contextmanager
def replacing_parts(folder: Path, allowed: Callable[[], object]) -> Iterator[Path]:
    """Gives a folder for the new parts, which take the place of the old ones after the block.

    `allowed` raises an error where that must not be; nobody else writes the parts meanwhile. An
    error leaves the old parts as they are. What killed processes left is completed or removed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with _alone(folder):
        _put_in_place(folder)
        atomic.remove_leftovers(folder, _STAGING)
        allowed()
        fresh = folder / f".{_STAGING}-{os.getpid()}.tmp"
        try:
            fresh.mkdir()
            yield fresh
            fresh.rename(folder / _READY)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
        _put_in_place(folder)


def complete_parts(folder: Path) -> None:
    """Put the parts that a killed process left ready into their places."""
    if os.path.lexists(folder / _READY):
        with _alone(folder), atomic.reporting(folder):
            _put_in_place(folder)


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    lock = Lock(folder / _LOCK)
    with lock:
        try:
            yield
        finally:
            with contextlib.suppress(OSError):  # Windows keeps files that are open
                lock.path.unlink()


def _put_in_place(folder: Path) -> None:
    """May be killed and done again at any point: a part is here until it is there."""
    ready = folder / _READY
    if not ready.is_dir():
        return
    for name in sorted(os.listdir(ready), key=lambda name: (name == _LAST, name)):
        old = folder / name
        if old.is_dir():
            shutil.rmtree(old)
        os.replace(ready / name, old)
    ready.rmdir()
