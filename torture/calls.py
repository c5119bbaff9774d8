"""Kills just before single calls that change files, over all calls of a study and of a save."""

import functools
import json
import os
import random
import shutil
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
    tree,
)
from torture.faults import Fault
from torture.kills import Writer

#: No command that writes one file makes more calls than these.
FILE_CALLS = 8
#: Two runs for the same folder. They share no number, and the old one has more cells.
OLD = ("run", "linear-20", "uniform", "--rounds", "20", "--seeds", "12", "--out", "o")
NEW = ("run", "linear-20", "linucb", "--rounds", "20", "--seeds", "3", "--out", "o")


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
    older = reference.folder / "saved"
    saves = range(1, len(save_calls(older)) + 1)
    for before in (older, None):
        name = "run --out, " + ("older results, " if before else "")
        out += [
            Attack("calls", f"{name}kill before call {n}", functools.partial(_save, before, n))
            for n in (saves[-4:-3] if short else saves)
        ]
    return out


def save_calls(older: Path) -> list[str]:
    """The calls of an undisturbed save into a folder that has results, which are kept here."""
    with scratch("saves") as folder:
        forked(*OLD, cwd=folder).must_succeed()
        shutil.rmtree(older, ignore_errors=True)
        shutil.copytree(folder / "o", older)
        log = folder / "calls.log"
        fault = Fault(str(folder / "o"), str(log))
        forked(*NEW, "--force", cwd=folder, fault=fault).must_succeed()
        return log.read_text().splitlines()


def _saved(folder: Path) -> tuple[list[str], dict[str, bytes]]:
    """Which agents all parts of a folder agree on, and its files; none where there are no results.

    Read as a user reads it, and then each part by itself.
    """
    import feelgood
    from feelgood.core.errors import FeelgoodError
    from feelgood.core.parquet import read_parquet

    try:
        loaded = feelgood.load(folder)
    except FeelgoodError:
        return [], {}
    files = tree(folder)
    told = json.loads(files["results.json"])["results"]
    table = read_parquet(files["results.parquet"])
    chains = [(one.agent, seed) for one in loaded for seed in one.seeds]
    check(chains == [(r["agent"], seed) for r in told for seed in r["seeds"]], "results.json")
    columns = (table[name].to_pylist() for name in ("agent", "seed"))
    check(chains == list(zip(*columns, strict=True)), "results.parquet is of another run")
    named = [entry["cell"] for entry in map(json.loads, files["manifest.jsonl"].splitlines()[1:])]
    there = [Path(name).stem for name in files if name.startswith("cells/")]
    check(sorted(named) == sorted(there), "the manifest is of another run", named, there)
    return sorted({agent for agent, _ in chains}), files


def _save(older: Path | None, at: int, folder: Path, luck: random.Random) -> int:
    """All old results or all new ones; a later save works, and leaves nothing behind."""
    place, old = folder / "o", ["uniform"] if older else []
    if older:
        shutil.copytree(older, place)
    fault = Fault(str(place), str(folder / "calls.log"), at=at)
    words = (*NEW, "--force") if older else NEW
    struck = forked(*words, cwd=folder, fault=fault)
    if struck.code >= 0:
        struck.must_succeed()
    if luck.random() < 0.5:
        found, files = _saved(place)
        check(found in (old, ["linucb"]), "neither the old results nor the new ones", found)
        if not found:
            forked(*NEW, cwd=folder).must_succeed()
    forked(*NEW, "--force", cwd=folder).must_succeed()
    found, files = _saved(place)
    check(found == ["linucb"], "the later save did not work", found)
    left = [name for name in files if name.startswith((".", "work"))]
    left += [path.name for path in place.iterdir() if path.name.startswith(".")]
    check(not left, "left behind", left)
    return int(struck.code < 0)


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
