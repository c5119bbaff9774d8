"""Kills at random instants: `kill -9` of a command, of its workers, or of all at once."""

import contextlib
import functools
import os
import random
import shutil
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from torture.arena import (
    LONG,
    Attack,
    Reference,
    check,
    command,
    environment,
    forked,
    must_be_whole,
    new_study,
    started,
    study_run,
    tree,
)

#: Kills of one study before it may finish.
KILLS = 5


def attacks(reference: Reference, short: bool) -> Sequence[Attack]:
    """Real studies with workers, quick ones in a fork, and the commands that write files."""
    small = reference.small
    out = [
        Attack("kills", f"{what} {i}", functools.partial(go, small, reference.seconds(small)))
        for i in range(1 if short else 24)
        for what, go in (
            ("study run, forked", _forked_study),
            ("run --out", _run_out),
            ("study export", functools.partial(_writer, "export")),
            ("report", functools.partial(_writer, "report")),
            ("plot", functools.partial(_writer, "plot")),
        )
    ]
    long = reference.long
    real = functools.partial(_real_study, long, reference.seconds(long))
    studies = [Attack("kills", f"study run, real {i}", real) for i in range(1 if short else 24)]
    return studies + out


def _workers(parent: int) -> list[int]:
    """Processes that this one started."""
    try:
        text = Path(f"/proc/{parent}/task/{parent}/children").read_text()
    except OSError:
        listing = subprocess.run(
            ["pgrep", "-P", str(parent)], capture_output=True, text=True, check=False
        )
        text = listing.stdout
    return [int(pid) for pid in text.split()]


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _real_study(reference: Path, seconds: float, folder: Path, luck: random.Random) -> int:
    """Struck again and again, at any instant from the start of the process on."""
    new_study(folder, LONG)
    words = ("study", "run", "s.toml", "--workers", "2", "--checkpoint-every", "0")
    kills = 0
    while kills < KILLS:
        process = subprocess.Popen(
            command(*words),
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=environment(),
        )
        try:
            process.wait(timeout=luck.uniform(0.0, 1.1 * seconds))
        except subprocess.TimeoutExpired:
            workers = _workers(process.pid)
            aim = luck.choice(["command", "command", "worker", "all"])
            kills += 1
            if aim == "worker" and workers:
                _kill(luck.choice(workers))
                code = process.wait(timeout=300)  # the worker is replaced
                check(code == 0, "a study whose worker was killed ended with", code)
                break
            _kill(process.pid)
            for worker in workers if aim == "all" else []:
                _kill(worker)
            process.wait()
        else:
            check(process.returncode == 0, "an undisturbed study ended with", process.returncode)
            break
    started(*words, cwd=folder).must_succeed()
    must_be_whole(folder / "store", reference)
    return kills


def _forked_study(reference: Path, seconds: float, folder: Path, luck: random.Random) -> int:
    """The same in one process, where most of the time goes into the store and the checkpoints."""
    new_study(folder)
    kills = 0
    for _ in range(KILLS):
        done = study_run(folder, kill_after=luck.uniform(0.0, 1.2 * seconds))
        kills += done.code < 0
        if done.code >= 0:
            done.must_succeed()
            must_be_whole(folder / "store", reference)
            shutil.rmtree(folder / "store")
    study_run(folder).must_succeed()
    must_be_whole(folder / "store", reference)
    return kills


def _run_out(reference: Path, seconds: float, folder: Path, luck: random.Random) -> int:
    """Files are whole or absent, and older ones stay until new ones are there."""
    from feelgood.parquet import read_parquet

    words = ("run", "linear-20", "uniform", "--rounds", "60", "--seeds", "3", "--out", "o")
    first = forked(*words, cwd=folder).must_succeed()
    before = tree(folder / "o")
    kills = 0
    for _ in range(KILLS):
        done = forked(*words, "--force", cwd=folder, kill_after=luck.uniform(0, first.seconds))
        kills += done.code < 0
        if done.code >= 0:
            done.must_succeed()
        found = {name: text for name, text in tree(folder / "o").items() if name in before}
        check(found.keys() == before.keys(), "older results are gone", sorted(found))
        table = read_parquet(found["results.parquet"])
        wanted = read_parquet(before["results.parquet"])
        for name in ("final_regret", "simple_regret", "seed"):
            check(table[name].equals(wanted[name]), "other numbers in", name)
    forked(*words, "--force", cwd=folder).must_succeed()
    check(tree(folder / "o").keys() == before.keys(), "left behind", sorted(tree(folder / "o")))
    return kills


def _writer(what: str, reference: Path, seconds: float, folder: Path, luck: random.Random) -> int:
    """What reads a store leaves it as it is, and writes its file whole or not at all."""
    new_study(folder)
    shutil.copytree(reference, folder / "store")
    before = tree(folder / "store")
    words = {
        "export": ("study", "export", "s.toml", "--format", "csv", "--out", "o/x.csv"),
        "report": ("report", "store", "--out", "o/x.html"),
        "plot": ("plot", "store", "--out", "o/x.svg"),
    }[what]
    first = forked(*words, cwd=folder).must_succeed()
    (wanted,) = tree(folder / "o").values()
    kills = 0
    for _ in range(KILLS):
        shutil.rmtree(folder / "o")
        done = forked(*words, cwd=folder, kill_after=luck.uniform(0, first.seconds))
        kills += done.code < 0
        if done.code >= 0:
            done.must_succeed()
        for path in (folder / "o").glob("x.*"):
            check(path.read_bytes() == wanted, f"{path.name} differs from the undisturbed one")
        (folder / "o").mkdir(exist_ok=True)
    forked(*words, "--force", cwd=folder).must_succeed()
    check(list(tree(folder / "o").values()) == [wanted], "left behind", sorted(tree(folder / "o")))
    check(tree(folder / "store") == before, "the store was changed")
    return kills
