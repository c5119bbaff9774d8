"""Kills just before single calls that change files, over all calls of a study."""

import functools
import os
import random
from collections.abc import Sequence
from pathlib import Path

from torture.arena import (
    Attack,
    Reference,
    check,
    forked,
    must_be_whole,
    new_study,
    scratch,
    started,
    study_run,
)
from torture.faults import Fault
from torture.kills import Writer

#: More calls than these no command makes that writes one file.
FILE_CALLS = 8


def calls_of(folder: Path, store: str = "store") -> list[str]:
    """The calls of an undisturbed study, in order."""
    log = folder / "calls.log"
    study_run(folder, Fault(str(folder / store), str(log))).must_succeed()
    return log.read_text().splitlines()


def attacks(reference: Reference, short: bool) -> Sequence[Attack]:
    """Before each call once; before some in the resumed run, too; a sample in real processes."""
    small = reference.small
    with scratch("calls") as folder:
        names = calls_of(new_study(folder))
    count = len(names)
    places = list(range(1, count + 1))
    if short:
        places = places[5 :: count // 3]
    out = [
        Attack("calls", f"kill before call {n}, {names[n - 1]}", functools.partial(_kill, small, n))
        for n in places
    ]
    if not short:
        out += [
            Attack("calls", f"two kills, {i}", functools.partial(_twice, small, count))
            for i in range(40)
        ]
    out += [
        Attack("calls", f"real {who} {i}", functools.partial(_real, small, who, count))
        for i in range(1 if short else 12)
        for who in (("worker",) if short else ("parent", "worker"))
    ]
    writers = [(what, n) for what in Writer.WORDS for n in range(1, FILE_CALLS + 1)]
    out += [
        Attack("calls", f"{what}, kill before call {n}", functools.partial(_writer, small, what, n))
        for what, n in (writers[3:4] if short else writers)
    ]
    return out


def _writer(reference: Path, what: str, at: int, folder: Path, luck: random.Random) -> int:
    """A command that writes one file."""
    writer = Writer(what, reference, folder)
    fault = Fault(str(folder / "o"), str(folder / "calls.log"), at=at)
    struck = writer.strike(fault=fault)
    writer.must_recover()
    return int(struck)


def _fault(folder: Path, at: int, who: str = "") -> Fault:
    return Fault(str(folder / "store"), str(folder / "calls.log"), at=at, who=who)


def _kill(reference: Path, at: int, folder: Path, luck: random.Random) -> int:
    new_study(folder)
    struck = study_run(folder, _fault(folder, at))
    check(struck.code == -9, "the kill did not come", struck)
    _readers_are_civil(folder)
    study_run(folder).must_succeed()
    must_be_whole(folder / "store", reference)
    return 1


def _twice(reference: Path, count: int, folder: Path, luck: random.Random) -> int:
    """The second kill strikes the run that mends what the first one left."""
    new_study(folder)
    kills = 0
    for _ in range(3):
        struck = study_run(folder, _fault(folder, luck.randint(1, count)))
        kills += struck.code == -9
    study_run(folder).must_succeed()
    must_be_whole(folder / "store", reference)
    return kills


def _real(reference: Path, who: str, count: int, folder: Path, luck: random.Random) -> int:
    """In real processes; a worker that dies at the same call again and again is given up."""
    new_study(folder)
    at = luck.randint(1, count // 2)
    words = ("study", "run", "s.toml", "--workers", "2", "--checkpoint-every", "0")
    struck = started(*words, cwd=folder, fault=_fault(folder, at, who=who))
    check("Traceback" not in struck.err, "a traceback", struck)
    if who == "worker":
        struck.must_be_civil()
    started(*words, cwd=folder).must_succeed()
    must_be_whole(folder / "store", reference)
    return int(struck.code != 0)


def _readers_are_civil(folder: Path) -> None:
    """`study show` right after a kill, where there is a store to look at."""
    if (folder / "store").exists():
        before = sorted(os.listdir(folder / "store"))
        forked("study", "show", "s.toml", cwd=folder).must_be_civil()
        check(sorted(os.listdir(folder / "store")) == before, "show changed the store")
