"""Faults in the file system, as one process sees it.

`install` wraps the calls that change files. Each one that concerns the folder under attack is
counted and written to a log. At a chosen one the process is killed before the call is made, or the
call fails as on a full or broken disk. It must not print: see `torture.injected`.
"""

import builtins
import dataclasses
import errno
import functools
import io
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

VARIABLE = "TORTURE_FAULT"
KILL = "kill"
#: Calls that fail on a full or broken disk; the others need no room.
NEEDS_ROOM = frozenset({"open", "write", "fsync", "mkdir", "link", "replace", "rename"})


@dataclasses.dataclass(frozen=True)
class Fault:
    """What goes wrong in which folder."""

    #: The folder whose calls count.
    folder: str
    #: The log: one line per call.
    log: str
    #: The number of the call at which it goes wrong; 0: never.
    at: int = 0
    #: `kill`, or the name of an error such as `ENOSPC`.
    do: str = KILL
    #: From then on every call that needs room fails, as on a disk that stays full.
    lasting: bool = False
    #: Whose calls count: `parent`, `worker` or, empty, everybody's.
    who: str = ""


class _Counter:
    """Counts calls and strikes at the chosen one."""

    def __init__(self, fault: Fault) -> None:
        self.fault = fault
        self.folder = os.path.realpath(fault.folder)
        self.count = 0
        self.log = os.open(fault.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self.write, self.readlink = os.write, os.readlink  # as they are before we wrap them

    def concerns(self, path: Any, dir_fd: int | None = None) -> bool:
        """Whether a path, or an open file, lies in the folder."""
        if isinstance(path, int):
            where = self.name_of(path)
        else:
            base = os.getcwd() if dir_fd is None else self.name_of(dir_fd)
            where = os.path.join(base, os.fsdecode(path))
        return os.path.normpath(where).startswith(self.folder)

    def name_of(self, handle: int) -> str:
        try:
            return self.readlink(f"/proc/self/fd/{handle}")
        except OSError:
            return ""

    def strike(self, call: str, path: Any) -> None:
        """Count this call; at the chosen one, kill or fail."""
        errors = self.fault.do != KILL
        if errors and call not in NEEDS_ROOM:
            return
        self.count += 1
        shown = os.path.basename(os.fsdecode(path)) or path
        self.write(self.log, f"{call} {shown}\n".encode(errors="replace"))
        reached = self.count == self.fault.at or (
            self.fault.lasting and 0 < self.fault.at <= self.count
        )
        if reached and not errors:
            os.kill(os.getpid(), signal.SIGKILL)
        if reached:
            number = getattr(errno, self.fault.do)
            raise OSError(number, os.strerror(number), str(path))


def _changes(mode: str) -> bool:
    return any(letter in mode for letter in "wax+")


class _File(io.FileIO):
    """A file whose writes are counted."""

    counter: _Counter

    def write(self, data: Any) -> int:
        self.counter.strike("write", self.name)
        return super().write(data)

    def truncate(self, size: int | None = None) -> int:
        self.counter.strike("truncate", self.name)
        return super().truncate(size)


def install(fault: Fault) -> None:
    """Wrap the calls of this process."""
    counter = _Counter(fault)

    def wrap(name: str, place: int) -> None:
        real: Callable[..., Any] = getattr(os, name)

        @functools.wraps(real)
        def wrapped(*words: Any, **options: Any) -> Any:
            path = words[place]
            fd = options.get("dst_dir_fd" if place else "dir_fd")
            harmless = name == "open" and not words[1] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
            if not harmless and counter.concerns(path, fd):
                shown = counter.name_of(path) if isinstance(path, int) else path
                counter.strike(name.removeprefix("f") if name == "ftruncate" else name, shown)
            return real(*words, **options)

        setattr(os, name, wrapped)

    real_open = io.open

    @functools.wraps(real_open)
    def opened(file: Any, mode: str = "r", *rest: Any, **options: Any) -> Any:
        if not _changes(mode) or isinstance(file, int) or not counter.concerns(file):
            return real_open(file, mode, *rest, **options)
        counter.strike("open", file)
        raw = _File(file, mode.replace("b", "").replace("t", ""))
        raw.counter = counter
        buffered: Any = io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)
        if "b" in mode:
            return buffered
        names = ("buffering", "encoding", "errors", "newline")
        given = dict(zip(names, rest, strict=False)) | options
        given.pop("buffering", None)
        return io.TextIOWrapper(buffered, **given)

    for name in ("open", "unlink", "remove", "rmdir", "mkdir", "fsync", "write", "ftruncate"):
        wrap(name, 0)
    for name in ("replace", "rename", "link"):
        wrap(name, 1)
    io.open = builtins.open = opened
    setattr(Path, "touch", _touch)  # noqa: B010


def _touch(path: Path, mode: int = 0o666, exist_ok: bool = True) -> None:
    """As `Path.touch`, through the wrapped `os.open`."""
    flags = os.O_CREAT | os.O_WRONLY | (0 if exist_ok else os.O_EXCL)
    os.close(os.open(path, flags, mode))


def install_from_environment() -> None:
    """In a real process: install the fault of `TORTURE_FAULT`, if it is for this process."""
    fault = Fault(**json.loads(os.environ[VARIABLE]))
    worker = "feelgood.studies.worker" in sys.orig_argv
    if not fault.who or (fault.who == "worker") == worker:
        install(fault)
