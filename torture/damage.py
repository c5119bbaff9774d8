"""Damage of every kind of file: never a traceback, never a wrong number, and `run` mends it."""

import dataclasses
import functools
import json
import os
import random
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from feelgood import __version__
from torture.arena import (
    Attack,
    Done,
    Reference,
    Skipped,
    cells,
    check,
    forked,
    must_be_whole,
    new_study,
    same_bits,
    scratch,
    study_run,
    without_vega,
)
from torture.faults import Fault

# ---- what can happen to a file --------------------------------------------------------------

Harm = Callable[[Path, random.Random], None]


def _rewritten(change: Callable[[bytes, random.Random], bytes]) -> Harm:
    def harm(path: Path, luck: random.Random) -> None:
        path.write_bytes(change(path.read_bytes(), luck))

    return harm


def _flipped(place: float) -> Harm:
    def flip(content: bytes, luck: random.Random) -> bytes:
        out = bytearray(content or b"\0")
        at = min(len(out) - 1, int(place * len(out)) + (0 if place else luck.randrange(4)))
        out[at] ^= 1 << luck.randrange(8)
        return bytes(out)

    return _rewritten(flip)


def _swapped(path: Path, luck: random.Random) -> None:
    """Another file of the same folder, or of the same kind in the folder above, in its place."""
    others = [p for p in path.parent.iterdir() if p.is_file() and p != path]
    others = [p for p in others if p.suffix == path.suffix] or others
    path.write_bytes(luck.choice(others).read_bytes() if others else b"nothing else is here\n")


def _instead(make: Callable[[Path], object]) -> Harm:
    def harm(path: Path, luck: random.Random) -> None:
        path.unlink()
        make(path)

    return harm


def _full_folder(path: Path) -> None:
    path.mkdir()
    (path / "inside").write_text("x")


def _foreign_npz(path: Path) -> None:
    with path.open("wb") as file:
        np.savez(file, x=np.zeros(3))


def _other_version(content: bytes, luck: random.Random) -> bytes:
    """Wherever a version stands in text, it is a later one."""
    for old, new in (
        (b'-store": 1', b'-store": 99'),
        (__version__.encode(), b"9.9.9"),
        (b"[0", b"[9"),
    ):
        if old in content:
            return content.replace(old, new, 1)
    return content + b"\n9"


HARM: dict[str, Harm] = {
    "empty": _rewritten(lambda content, luck: b""),
    "half": _rewritten(lambda content, luck: content[: len(content) // 2]),
    "minus one byte": _rewritten(lambda content, luck: content[:-1]),
    "bit flipped at the head": _flipped(0.0),
    "bit flipped in the middle": _flipped(0.5),
    "bit flipped at two thirds": _flipped(0.67),
    "bit flipped at the tail": _flipped(1.0),
    "zeros": _rewritten(lambda content, luck: bytes(len(content))),
    "zeros at the end": _rewritten(lambda c, luck: c[: len(c) // 2] + bytes(len(c) - len(c) // 2)),
    "random bytes": _rewritten(lambda content, luck: luck.randbytes(max(1, len(content)))),
    "garbage appended": _rewritten(lambda content, luck: content + luck.randbytes(77)),
    "twice itself": _rewritten(lambda content, luck: content * 2),
    "head missing": _rewritten(lambda content, luck: content[7:]),
    "a sibling in its place": _swapped,
    "a folder": _instead(Path.mkdir),
    "a folder with a file": _instead(_full_folder),
    "a link to itself": _instead(lambda path: path.symlink_to(path.name)),
    "a link to nothing": _instead(lambda path: path.symlink_to("nowhere")),
    "a foreign Parquet": _instead(lambda path: pq.write_table(pa.table({"x": [1]}), path)),
    "a foreign npz": _instead(_foreign_npz),
    "a foreign JSON": _instead(lambda path: path.write_text('{"a": [1, 2, {"b": null}]}\n')),
    "JSON lines of other types": _instead(
        lambda path: path.write_text('1\n"x"\n[1]\n[[]]\nnull\n')
    ),
    "CRLF line ends": _rewritten(lambda content, luck: content.replace(b"\n", b"\r\n")),
    "another version": _rewritten(_other_version),
    "deleted": lambda path, luck: path.unlink(),
    "mode 000": lambda path, luck: path.chmod(0),
}
#: How many of all there are in the short form.
SHORT = 10
#: What is no file any more: a sentence that names it will do, if it helps to take it away.
NO_FILE = {"a folder", "a folder with a file", "a link to itself", "a link to nothing"}


def _harm(name: str, path: Path, luck: random.Random) -> None:
    if name == "mode 000" and os.getuid() == 0:
        raise Skipped("root may read everything")
    HARM[name](path, luck)


def _line(number: int, name: str) -> Harm:
    """The harm to one line of a file."""

    def harm(path: Path, luck: random.Random) -> None:
        lines = path.read_bytes().splitlines(keepends=True)
        piece = path.with_name("piece")
        piece.write_bytes(lines[number])
        HARM[name](piece, luck)
        lines[number] = piece.read_bytes() if piece.exists() else b""
        piece.unlink(missing_ok=True)
        path.write_bytes(b"".join(lines))

    return harm


# ---- what is harmed -------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Target:
    """A kind of file in a store: in the finished one or in the one that was struck half way."""

    name: str
    half: bool
    find: Callable[[Path], Path]
    #: Whether bits may differ in the last place: the batch is not known any more.
    loose: bool = False


def _first(pattern: str) -> Callable[[Path], Path]:
    return lambda store: sorted(store.glob(pattern))[0]


def _uniform(store: Path) -> Path:
    """The cell that is alone in its batch."""
    for cell, table in cells(store).items():
        if table["agent"][0].as_py() == "uniform":
            return store / "cells" / f"{cell}.parquet"
    raise AssertionError("no such cell")


def _token(store: Path) -> Path:
    folder = next(path for path in (store / "work").iterdir() if path.is_dir())
    (folder / "driver-1").write_bytes(b"")
    return folder / "driver-1"


TARGETS = (
    Target("cell", False, _uniform),
    Target("cell of a batch in progress", True, _first("cells/*.parquet")),
    Target("manifest", False, lambda store: store / "manifest.jsonl"),
    Target("manifest of a study in progress", True, lambda store: store / "manifest.jsonl"),
    Target("plan", True, _first("work/plan-*.jsonl"), loose=True),
    Target("checkpoint", True, _first("work/*/*.npz")),
    Target("batch lock", True, _first("work/*/lock")),
    Target("store lock", True, lambda store: store / "work" / "store.lock"),
    Target("token", True, _token),
)
LINES = [name for name in HARM if name not in NO_FILE | {"deleted", "mode 000", "CRLF line ends"}]


def attacks(reference: Reference, short: bool) -> Sequence[Attack]:
    """Every kind of file with every kind of harm; where `short`, some of each."""
    small = reference.small
    half = _half(reference)
    out = []
    for target in TARGETS:
        for name in HARM:
            go = functools.partial(_store, small, half, target, functools.partial(_harm, name))
            out.append(Attack("damage", f"{target.name}, {name}", go))
    for number, what in ((0, "header"), (1, "line")):
        target = Target(f"manifest's {what}", True, lambda store: store / "manifest.jsonl")
        for name in LINES:
            go = functools.partial(_store, small, half, target, _line(number, name))
            out.append(Attack("damage", f"{target.name}, {name}", go))
    analysis = _analysis(reference)
    for file in ("posterior.json", "measures.parquet", "draws.parquet", "laws.parquet"):
        for name in HARM:
            go = functools.partial(_posterior, analysis, file, name)
            out.append(Attack("damage", f"{file}, {name}", go))
    for name in HARM:
        out.append(Attack("damage", f"dataset, {name}", functools.partial(_dataset, name)))
        go = functools.partial(_programs, reference.folder / "programs", name)
        out.append(Attack("damage", f"program cache, {name}", go))
        out.append(Attack("damage", f"baselines, {name}", functools.partial(_baselines, name)))
    _program_cache(reference)
    if short:
        out = random.Random(1).sample(out, SHORT)
    return out


def _half(reference: Reference) -> Path:
    """A study that was killed when one cell of its first batch was there and the other not."""
    place = reference.folder / "half"
    if not (place / "made").exists():
        shutil.rmtree(place, ignore_errors=True)
        new_study(place)
        with scratch("half") as folder:
            new_study(folder)
            log = folder / "log"
            study_run(folder, Fault(str(folder / "store"), str(log))).must_succeed()
            calls = log.read_text().splitlines()
        at = [n for n, call in enumerate(calls, start=1) if call.startswith("link ")][1]
        struck = study_run(place, Fault(str(place / "store"), str(place / "log"), at=at))
        check(struck.code == -9, "the kill did not come", struck)
        (place / "made").touch()
    return place / "store"


def _store(
    whole: Path, half: Path, target: Target, harm: Harm, folder: Path, luck: random.Random
) -> int:
    new_study(folder)
    store = folder / "store"
    shutil.copytree(half if target.half else whole, store)
    victim = target.find(store)
    harm(victim, luck)
    no_file = victim.is_dir() or victim.is_symlink()
    _readers(folder, whole)
    done = study_run(folder).must_be_civil()
    if done.code == 2 and no_file:
        check(str(victim.name) in done.err, "the sentence does not name the file", done)
        _remove(victim)
        done = study_run(folder)
    done.must_succeed()
    if target.loose:
        _must_agree(store, whole)
    else:
        must_be_whole(store, whole)
    return 1


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def _must_agree(store: Path, whole: Path) -> None:
    found, wanted = cells(store), cells(whole)
    check(found.keys() == wanted.keys(), "other cells")
    for cell, table in wanted.items():
        for name in ("final_regret", "simple_regret"):
            one, other = (np.asarray(t[name], float) for t in (found[cell], table))
            check(np.allclose(one, other, rtol=1e-3, equal_nan=True), "other numbers", cell, name)


def _readers(folder: Path, whole: Path) -> None:
    """What they show is right, and what they leave out they name; the store stays as it is."""
    forked("study", "show", "s.toml", cwd=folder).must_be_civil()
    done = forked("study", "export", "s.toml", "--out", "x.parquet", cwd=folder).must_be_civil()
    present = {path.stem for path in (folder / "store" / "cells").glob("*.parquet")}
    if done.code == 0:
        table = pq.read_table(folder / "x.parquet", use_threads=False)
        wanted, shown = cells(whole), set(table["cell"].to_pylist())
        for cell in shown:
            rows = table.filter(pc.equal(table["cell"], cell))
            rows = rows.select(wanted[cell].column_names).combine_chunks()
            right = wanted[cell].replace_schema_metadata(None).combine_chunks()
            check(same_bits(rows, right), "export shows other numbers", done)
        if present - shown:
            check("left out" in done.err, "cells left out without a word", done)
    page = forked("report", "store", "--out", "x.html", cwd=folder, prepare=without_vega)
    page.must_be_civil()
    if page.code == 0 and "left out" in page.err:
        check("left out" in (folder / "x.html").read_text(), "the page does not say it", page)


# ---- files outside a store ------------------------------------------------------------------


def _analysis(reference: Reference) -> Path:
    place = reference.folder / "analysis"
    if not (place / "posterior.json").exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        words = ("posterior", "lints", "--rounds", "40", "--draws", "200", "--chains", "10")
        forked(*words, "--out", place.name, "--force", cwd=place.parent).must_succeed()
    return place


def _posterior(analysis: Path, file: str, name: str, folder: Path, luck: random.Random) -> int:
    shutil.copytree(analysis, folder / "a")
    _harm(name, folder / "a" / file, luck)
    for words in (
        ("report", "a", "--out", "x.html"),
        ("plot", "a", "--chart", "draws", "--out", "x.svg"),
    ):
        done = forked(*words, cwd=folder, prepare=without_vega).must_be_civil()
        if done.code == 2:
            check(len(done.sentences) == 1, "not one sentence", done)
            check(" a" in done.sentences[0], "the folder is not named", done)
    return 1


def _regrets(done: Done) -> list[float | None]:
    found = json.loads(done.out.splitlines()[-1])
    return [seed for result in found["results"] for seed in result["final_regret"]]


def _dataset(name: str, folder: Path, luck: random.Random) -> int:
    data = Path(os.environ.get("TORTURE_DATA", "nowhere"))
    if not (data / "financial.npz").exists():
        raise Skipped("no dataset: set FEELGOOD_DATA")
    for one in ("financial.npz", "restaurant.npz"):
        if (data / one).exists():
            shutil.copy(data / one, folder / one)
    words = ("run", "financial", "uniform", "--rounds", "30", "--seeds", "2", "--json", "-")
    env = {"FEELGOOD_DATA": str(folder)}
    right = _regrets(forked(*words, cwd=folder, env=env).must_succeed())
    _harm(name, folder / "financial.npz", luck)
    done = forked(*words, cwd=folder, env=env).must_be_civil()
    check(done.code == 2 or _regrets(done) == right, "other numbers", done)
    if done.code == 2:
        check(len(done.sentences) == 1, "not one sentence", done)
    return 1


RUN = ("run", "linear-20", "linucb", "--rounds", "60", "--seeds", "3", "--json", "-")


def _program_cache(reference: Reference) -> None:
    """Compiled programs of one run, and what it gave."""
    place = reference.folder / "programs"
    if not (place / "right.json").exists():
        place.mkdir(parents=True, exist_ok=True)
        done = forked(*RUN, cwd=place, env={"FEELGOOD_CACHE": str(place / "cache")}).must_succeed()
        (place / "right.json").write_text(json.dumps(_regrets(done)))


def _programs(place: Path, name: str, folder: Path, luck: random.Random) -> int:
    shutil.copytree(place / "cache", folder / "cache")
    files = [p for p in (folder / "cache" / "programs").iterdir() if p.is_file()]
    for victim in [p for p in files if p.suffix != "" or p.stat().st_size > 64]:
        if victim.exists() and not victim.name.endswith("-atime"):
            _harm(name, victim, luck)
    done = forked(*RUN, cwd=folder, env={"FEELGOOD_CACHE": str(folder / "cache")}).must_succeed()
    check(_regrets(done) == json.loads((place / "right.json").read_text()), "other numbers", done)
    return 1


def _baselines(name: str, folder: Path, luck: random.Random) -> int:
    from feelgood.api import challenges

    copy = folder / "baselines.parquet"
    shutil.copy(challenges.FILE, copy)
    shutil.copy(challenges.FILE, folder / "other.parquet")
    (folder / "other.parquet").write_bytes(b"PAR1")
    _harm(name, copy, luck)

    def use_it() -> None:
        challenges.FILE = copy

    words = ("challenge", "uniform", "--testbed", "linear-20", "--seeds", "1")
    done = forked(*words, cwd=folder, prepare=use_it).must_be_civil()
    if done.code == 2:
        check(len(done.sentences) == 1, "not one sentence", done)
    return 1
