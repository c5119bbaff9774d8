"""Full and failing disks: one sentence, nothing damaged, and the same command goes on."""

import contextlib
import functools
import os
import random
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from torture.arena import (
    Attack,
    Done,
    Reference,
    Skipped,
    check,
    forked,
    must_be_whole,
    new_study,
    scratch,
    started,
    study_run,
    work_here,
)
from torture.faults import Fault

ERRORS = ("ENOSPC", "EIO", "EDQUOT")


def attacks(reference: Reference, short: bool) -> Sequence[Attack]:
    """Every call that needs room fails, once or from then on; and disks that are really small."""
    small = reference.small
    with scratch("disks") as folder:
        log = folder / "calls.log"
        new_study(folder)
        study_run(folder, Fault(str(folder / "store"), str(log), do="ENOSPC")).must_succeed()
        names = log.read_text().splitlines()
    places = list(range(1, len(names) + 1))
    if short:
        places = places[7 :: len(places) // 2]
    out = []
    for n in places:
        error, lasting = ERRORS[n % 3], bool(n % 2)
        name = f"{error}{' for good' if lasting else ''} at call {n}, {names[n - 1]}"
        out.append(Attack("disks", name, functools.partial(_failing, small, n, error, lasting)))
    sizes = (24,) if short else (4, 8, 12, 16, 20, 24, 28, 32, 40, 48)
    for kib in sizes:
        out.append(Attack("disks", f"study on {kib} KiB", functools.partial(_small, small, kib)))
    for what in () if short else ("run", "export", "report", "cache"):
        out.append(
            Attack("disks", f"{what} on a full disk", functools.partial(_other, small, what))
        )
    if not short:
        for n in range(3, 15, 3):
            go = functools.partial(_real, small, n)
            out.append(Attack("disks", f"real processes, ENOSPC at {n}", go))
    return out


def _refused(done: Done) -> None:
    """One sentence about what could not be written."""
    done.must_be_civil()
    check(done.code == 2, "a full disk gave another code", done)
    check(len(done.sentences) == 1, "not one sentence", done)
    check("cannot" in done.sentences[0], "the sentence says not what failed", done)


def _failing(
    reference: Path, at: int, error: str, lasting: bool, folder: Path, luck: random.Random
) -> int:
    new_study(folder)
    fault = Fault(str(folder / "store"), str(folder / "calls.log"), at, error, lasting)
    struck = study_run(folder, fault)
    if struck.code != 0 or lasting:
        _refused(struck)
    study_run(folder).must_succeed()
    must_be_whole(folder / "store", reference)
    return 1


def _real(reference: Path, at: int, folder: Path, luck: random.Random) -> int:
    """In the worker's process, or the parent's: whichever makes the call."""
    new_study(folder)
    fault = Fault(str(folder / "store"), str(folder / "calls.log"), at, "ENOSPC", lasting=True)
    words = ("study", "run", "s.toml", "--workers", "2", "--checkpoint-every", "0")
    _refused(started(*words, cwd=folder, fault=fault))
    started(*words, cwd=folder).must_succeed()
    must_be_whole(folder / "store", reference)
    return 1


@contextlib.contextmanager
def _disk(folder: Path, kib: int) -> Iterator[Path]:
    """A disk of that size."""
    disk = folder / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={kib}k", "tmpfs", str(disk)]
    if (
        not shutil.which("mount")
        or subprocess.run(mount, check=False, capture_output=True).returncode
    ):
        raise Skipped("mounting a small disk needs root")
    try:
        yield disk
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True, capture_output=True)


def _grow(disk: Path) -> None:
    grow = ["mount", "-o", "remount,size=64m", str(disk)]
    subprocess.run(grow, check=True, capture_output=True)


def _small(reference: Path, kib: int, folder: Path, luck: random.Random) -> int:
    with _disk(folder, kib) as disk:
        new_study(folder)
        words = ("study", "run", "s.toml", "--checkpoint-every", "0", "--store", "disk/store")
        struck = forked(*words, cwd=folder, prepare=work_here)
        if struck.code != 0:
            _refused(struck)
        _grow(disk)
        forked(*words, cwd=folder, prepare=work_here).must_succeed()
        must_be_whole(disk / "store", reference)
    return 1


def _other(reference: Path, what: str, folder: Path, luck: random.Random) -> int:
    """Commands that write one file; and a program cache without room, which costs time only."""
    with _disk(folder, 64) as disk:
        new_study(folder)
        shutil.copytree(reference, folder / "store")
        (disk / "filler").write_bytes(bytes(60 * 1024))
        run = ("run", "linear-20", "uniform", "--rounds", "60", "--seeds", "3")
        words = {
            "run": (*run, "--out", "disk/o"),
            "export": ("study", "export", "s.toml", "--out", "disk/x.parquet"),
            "report": ("report", "store", "--out", "disk/x.html"),
            "cache": run,
        }[what]
        env = {"FEELGOOD_CACHE": str(disk / "cache")} if what == "cache" else {}
        struck = forked(*words, cwd=folder, env=env)
        if what == "cache":
            struck.must_succeed()
        else:
            _refused(struck)
        left = [name for _, _, names in os.walk(disk) for name in names if name.endswith(".tmp")]
        check(not left, "half-written files", left)
        (disk / "filler").unlink()
        _grow(disk)
        more = ("--force",) if what != "cache" else ()
        forked(*words, *more, cwd=folder, env=env).must_succeed()
    return 1
