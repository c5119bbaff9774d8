"""What all attacks share: how commands are started, what a sound store is, what counts as wrong."""

import contextlib
import dataclasses
import functools
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from torture.faults import VARIABLE, Fault, install

ROOT = Path(__file__).resolve().parents[1]

#: Two batches, three cells, in less than a second; one batch has two cells.
SMALL = """
name = "s"
store = "store"
rounds = 60
seeds = 3
testbeds = ["linear-20"]

[agents.linucb]
alpha = [0.5, 1]

[agents.uniform]
"""
#: Long enough to be struck in the middle, on several workers.
LONG = """
name = "s"
store = "store"
rounds = 1500
seeds = 3
testbeds = ["linear-20"]

[agents.lints]

[agents.lmcts]
beta = [1, 100]

[agents.fglmcts]
lam = 0.5
steps = 5
"""


class Wrong(Exception):
    """The library did something that it must not do."""


class Skipped(Exception):
    """The attack is not possible on this machine; the message says why."""


def check(fine: object, *what: object) -> None:
    """Raise `Wrong` unless `fine`."""
    if not fine:
        raise Wrong(": ".join(str(part) for part in what))


@dataclasses.dataclass(frozen=True)
class Attack:
    """One attack on the library; `go` raises `Wrong`, or returns how many faults it caused."""

    kind: str
    name: str
    go: Callable[[Path, random.Random], int]


@dataclasses.dataclass(frozen=True)
class Done:
    """How a command ended; a negative code is the signal that killed it."""

    words: tuple[str, ...]
    code: int
    out: str
    err: str
    #: Wall-clock seconds, and seconds of the processor.
    seconds: float
    work: float = 0.0

    @property
    def sentences(self) -> list[str]:
        """What the library itself said on standard error."""
        return [line for line in self.err.splitlines() if line.startswith("feelgood:")]

    def __str__(self) -> str:
        tail = " | ".join((self.err or self.out).strip().splitlines()[-4:])
        return f"feelgood {' '.join(self.words)[:200]} gave {self.code}, {tail[-600:]!r}"

    def must_be_civil(self) -> "Done":
        """No traceback, no crash; a refusal is one sentence and code 2."""
        check("Traceback" not in self.err + self.out, "a traceback", self)
        check(self.code in (0, 2), "an unexpected exit code", self)
        if self.code == 2:
            check(self.sentences, "refused without a sentence", self)
        return self

    def must_succeed(self) -> "Done":
        """No traceback, and exit code 0."""
        self.must_be_civil()
        check(self.code == 0, "refused", self)
        return self


# ---- starting commands ----------------------------------------------------------------------


def preload() -> None:
    """Import what commands need, so that a forked one starts at once; JAX itself stays idle."""


def forked(
    *words: object,
    cwd: Path,
    fault: Fault | None = None,
    prepare: Callable[[], None] | None = None,
    kill_after: float | None = None,
    limit: float = 300.0,
    env: Mapping[str, str] | None = None,
) -> Done:
    """`feelgood WORDS` in a fork of this process: quick, because everything is imported."""
    told = tuple(map(str, words))
    paths = [cwd / f".{stream}-{os.getpid()}-{time.monotonic_ns()}" for stream in ("out", "err")]
    sys.stdout.flush()
    sys.stderr.flush()
    began, before = time.monotonic(), _work()
    pid = os.fork()
    if pid == 0:
        _be_the_command(told, cwd, paths, fault, prepare, env or {})
    try:
        code = _wait(pid, began, kill_after, limit, told)
    finally:
        out, err = (_text_of(path) for path in paths)
    return Done(told, code, out, err, time.monotonic() - began, _work() - before)


def _work() -> float:
    """Seconds of the processor that finished children have used."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _text_of(path: Path) -> str:
    text = path.read_bytes().decode(errors="replace") if path.exists() else ""
    path.unlink(missing_ok=True)
    return text


def _be_the_command(
    words: tuple[str, ...],
    cwd: Path,
    paths: list[Path],
    fault: Fault | None,
    prepare: Callable[[], None] | None,
    env: Mapping[str, str],
) -> None:
    """What the fork does; it never returns."""
    code = 70
    try:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        for number, path in enumerate(paths, start=1):
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(handle, number)
        sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
        sys.stderr = os.fdopen(2, "w", encoding="utf-8", closefd=False, buffering=1)
        os.chdir(cwd)
        os.environ.update(env)
        if prepare is not None:
            prepare()
        if fault is not None:
            install(fault)
        sys.argv = ["feelgood", *words]
        from feelgood.cli import main

        main()
        code = 0
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except BaseException:
        traceback.print_exc()
        code = 1
    finally:
        with contextlib.suppress(BaseException):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _wait(
    pid: int, began: float, kill_after: float | None, limit: float, words: tuple[str, ...]
) -> int:
    """Until the process ends; it is killed at the chosen moment."""
    pause = 0.002
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        passed = time.monotonic() - began
        if kill_after is not None and passed >= kill_after:
            os.kill(pid, signal.SIGKILL)
            kill_after = None
        if passed > limit:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            raise Wrong(f"feelgood {' '.join(words)[:200]} took more than {limit:.0f} s")
        time.sleep(pause)
        pause = min(2 * pause, 0.05)


def command(*words: object) -> list[str]:
    """The command line of a real process."""
    return [sys.executable, "-m", "feelgood", *map(str, words)]


def environment(fault: Fault | None = None, env: Mapping[str, str] | None = None) -> dict[str, str]:
    """Of a real process, with a fault in it."""
    out = {**os.environ, **(env or {})}
    if fault is not None:
        out[VARIABLE] = json.dumps(dataclasses.asdict(fault))
        out["TORTURE_ROOT"] = str(ROOT)
        before = out.get("PYTHONPATH")
        parts = [str(Path(__file__).with_name("injected"))] + ([before] if before else [])
        out["PYTHONPATH"] = os.pathsep.join(parts)
    return out


def started(*words: object, cwd: Path, fault: Fault | None = None) -> Done:
    """`feelgood WORDS` as a real process, to its end."""
    began, before = time.monotonic(), _work()
    try:
        done = subprocess.run(
            command(*words),
            cwd=cwd,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=300,
            stdin=subprocess.DEVNULL,
            env=environment(fault),
        )
    except subprocess.TimeoutExpired:
        raise Wrong(f"feelgood {' '.join(map(str, words))[:200]} took more than 300 s") from None
    seconds, work = time.monotonic() - began, _work() - before
    return Done(tuple(map(str, words)), done.returncode, done.stdout, done.stderr, seconds, work)


def work_here() -> None:
    """In a fork: batches run in the process itself, by the worker's own code."""
    from feelgood.studies import driver, worker
    from feelgood.studies.batches import CellBatch
    from feelgood.studies.engines.engine import BatchDone, Engine, Event, Failed, failure_in_words

    class Here(Engine):
        """One batch at a time, in this process."""

        def __init__(self, checkpoint_every: float) -> None:
            self._every, self._batches = checkpoint_every, list[CellBatch]()

        @property
        def slots(self) -> int:
            return 1

        def start(self, store: Path) -> str:
            self._store = store.resolve()
            return "cpu"

        def submit(self, batch: CellBatch) -> None:
            self._batches.append(batch)

        def wait(self, seconds: float) -> list[Event]:
            batch = self._batches.pop(0)
            message = {
                "batch": batch.to_json(),
                "store": str(self._store),
                "checkpoint_every": self._every,
            }
            try:
                worker._run(message, lambda **said: None)
            except Exception as error:
                return [Failed(batch, failure_in_words(error))]
            return [BatchDone(batch)]

        def stop(self) -> None:
            self._batches.clear()

    def make(name: str, checkpoint_every: float, **options: Any) -> Engine:
        return Here(checkpoint_every)

    vars(driver)["make_engine"] = make


def study_run(folder: Path, fault: Fault | None = None, kill_after: float | None = None) -> Done:
    """`feelgood study run` in a fork, with a checkpoint after every call."""
    return forked(
        *("study", "run", "s.toml", "--checkpoint-every", "0"),
        cwd=folder,
        fault=fault,
        kill_after=kill_after,
        prepare=work_here,
    )


def without_vega() -> None:
    """In a fork: pages without their drawing library, which takes long to put together."""
    from feelgood.report import page

    vars(page)["_vega"] = lambda: ""


# ---- stores ---------------------------------------------------------------------------------


@functools.cache
def ids_of(text: str) -> frozenset[str]:
    """The cells of a study."""
    from feelgood.studies.files import read_study

    with scratch("ids") as folder:
        (folder / "s.toml").write_text(text)
        return frozenset(cell.id for cell in read_study(folder / "s.toml").study.cells)


@contextlib.contextmanager
def scratch(name: str) -> Iterator[Path]:
    """A folder of this process, gone afterwards."""
    folder = Path(os.environ["TORTURE_SCRATCH"]) / f"{name}-{os.getpid()}-{time.monotonic_ns()}"
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def new_study(folder: Path, text: str = SMALL) -> Path:
    """A folder with a study file in it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "s.toml").write_text(text)
    return folder


def cells(store: Path) -> dict[str, pa.Table]:
    """Every cell's numbers, without the columns that say when and where."""
    from feelgood.core.parquet import read_parquet
    from feelgood.studies.cells import PROVENANCE

    return {
        file.stem: read_parquet(file.read_bytes()).drop_columns(list(PROVENANCE))
        for file in sorted((store / "cells").glob("*.parquet"))
    }


def must_be_whole(store: Path, reference: Path) -> None:
    """All cells are there, bit for bit those of the undisturbed study, and nothing else is left."""
    from feelgood.studies.store import Store

    wanted, found = cells(reference), cells(store)
    check(found.keys() == wanted.keys(), "other cells", sorted(found.keys() ^ wanted.keys()))
    for cell, table in wanted.items():
        check(same_bits(found[cell], table), f"cell {cell} has other numbers")
    check(not Store(store, create=False).verify(), "the store is damaged")
    lines = (store / "manifest.jsonl").read_bytes().splitlines()
    named = sorted(entry["cell"] for entry in map(_entry, lines) if "cell" in entry)
    check(set(named) >= set(wanted), "the manifest lacks cells", named)
    left = [
        str(path.relative_to(store))
        for path in store.rglob("*")
        if path.name.endswith(".tmp")
        or ("work" in path.relative_to(store).parts and path.name not in ("work", "store.lock"))
    ]
    check(not left, "left behind", left)


def _entry(line: bytes) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def same_bits(one: pa.Table, other: pa.Table) -> bool:
    """Whether two tables hold the same numbers; NaN is stored as null."""
    return bool(one.equals(other))


def tree(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


@dataclasses.dataclass
class Reference:
    """Undisturbed studies to compare with, in a folder that several runs may share."""

    folder: Path

    def of(self, name: str, text: str, real: bool = False) -> Path:
        """The store of a study that nothing disturbed, run by real workers where `real`."""
        place = self.folder / name
        if not (place / "seconds").exists():
            shutil.rmtree(place, ignore_errors=True)
            for _ in range(2 if real else 1):  # the second time its programs are compiled
                shutil.rmtree(place / "store", ignore_errors=True)
                new_study(place, text)
                words = ("study", "run", "s.toml", "--workers", "2")
                done = started(*words, cwd=place) if real else study_run(place)
                done.must_succeed()
            (place / "seconds").write_text(str(done.seconds))
        return place / "store"

    def seconds(self, store: Path) -> float:
        """How long the undisturbed study took."""
        return float((store.parent / "seconds").read_text())

    @property
    def small(self) -> Path:
        """The undisturbed store of `SMALL`."""
        return self.of("small", SMALL)

    @property
    def long(self) -> Path:
        """The undisturbed store of `LONG`."""
        return self.of("long", LONG, real=True)
