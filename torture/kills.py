"""Kills at random instants: `kill -9` of a command, of its workers, or of all at once."""

import contextlib
import functools
import os
import random
import re
import shutil
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from torture.arena import (
    LONG,
    SMALL,
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
    without_vega,
)

#: Kills of one study before it may finish.
KILLS = 5


def attacks(reference: Reference, short: bool) -> Sequence[Attack]:
    """Real studies with workers, quick ones in a fork, and the commands that write files."""
    small = reference.small
    if short:
        real = functools.partial(_real_study, small, 6.0, SMALL)
    else:
        long = reference.long
        real = functools.partial(_real_study, long, reference.seconds(long), LONG)
    quick = functools.partial(_forked_study, small, reference.seconds(small))
    kinds: dict[str, Any] = {
        "study run, real": real,
        "study run, forked": quick,
        "export": functools.partial(_writer, "export", small),
    }
    if not short:
        kinds["run --out"] = _run_out
        kinds["report"] = functools.partial(_writer, "report", small)
        kinds["plot"] = functools.partial(_writer, "plot", small)
    kills = 2 if short else KILLS
    return [
        Attack("kills", f"{name} {i}", functools.partial(go, kills))
        for i in range(1 if short else 20)
        for name, go in kinds.items()
    ]


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


def _real_study(
    reference: Path, seconds: float, text: str, most: int, folder: Path, luck: random.Random
) -> int:
    """Kill it again and again, at random instants from the start of the process on."""
    new_study(folder, text)
    words = ("study", "run", "s.toml", "--workers", "2", "--checkpoint-every", "0")
    kills = 0
    while kills < most:
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


def _forked_study(
    reference: Path, seconds: float, most: int, folder: Path, luck: random.Random
) -> int:
    """The same in one process, where most of the time goes into the store and the checkpoints."""
    new_study(folder)
    kills = 0
    for _ in range(most):
        done = study_run(folder, kill_after=luck.uniform(0.0, 1.2 * seconds))
        kills += done.code < 0
        if done.code >= 0:
            done.must_succeed()
            must_be_whole(folder / "store", reference)
            shutil.rmtree(folder / "store")
    study_run(folder).must_succeed()
    must_be_whole(folder / "store", reference)
    return kills


class Writer:
    """A command that reads a store and writes one file, `o/x.SUFFIX`."""

    WORDS: ClassVar = {
        "export": ("study", "export", "s.toml", "--format", "csv", "--out", "o/x.csv"),
        "report": ("report", "store", "--out", "o/x.html"),
        "plot": ("plot", "store", "--out", "o/x.svg"),
    }

    def __init__(self, what: str, reference: Path, folder: Path) -> None:
        self.folder, self.words = new_study(folder), self.WORDS[what]
        shutil.copytree(reference, folder / "store")
        self.before = tree(folder / "store")
        done = forked(*self.words, cwd=folder, prepare=without_vega).must_succeed()
        self.seconds = done.seconds
        (self.wanted,) = self._files().values()

    def _files(self) -> dict[str, bytes]:
        """What was written, without the minute of writing."""
        return {
            name: re.sub(rb" on \d+ \w+ \d{4}, \d\d:\d\d UTC", b"", content)
            for name, content in tree(self.folder / "o").items()
        }

    def strike(self, **options: Any) -> bool:
        """Run it and kill it; returns whether the kill came in time."""
        shutil.rmtree(self.folder / "o")
        done = forked(*self.words, cwd=self.folder, prepare=without_vega, **options)
        if done.code >= 0:
            done.must_succeed()
        (self.folder / "o").mkdir(exist_ok=True)
        for name, content in self._files().items():
            whole = name.startswith(".") or content == self.wanted
            check(whole, f"{name} differs from the undisturbed one")
        return done.code < 0

    def must_recover(self) -> None:
        """The same command again: its file is there, nothing else, and the store as it was."""
        forked(*self.words, "--force", cwd=self.folder, prepare=without_vega).must_succeed()
        check(list(self._files().values()) == [self.wanted], "left behind", sorted(self._files()))
        check(tree(self.folder / "store") == self.before, "the store was changed")


def _run_out(most: int, folder: Path, luck: random.Random) -> int:
    """Files are whole or absent, and older ones stay until new ones are there."""
    import feelgood
    from feelgood.core.parquet import read_parquet

    words = ("run", "linear-20", "uniform", "--rounds", "60", "--seeds", "3", "--out", "o")
    first = forked(*words, cwd=folder).must_succeed()
    before = tree(folder / "o")
    kills = 0
    for _ in range(most):
        done = forked(*words, "--force", cwd=folder, kill_after=luck.uniform(0, first.seconds))
        kills += done.code < 0
        if done.code >= 0:
            done.must_succeed()
        # Who opens the folder completes a save that was killed between two parts.
        check(len(feelgood.load(folder / "o")) == 1, "not one agent")
        found = {name: text for name, text in tree(folder / "o").items() if name in before}
        check(found.keys() == before.keys(), "older results are gone", sorted(found))
        table = read_parquet(found["results.parquet"])
        wanted = read_parquet(before["results.parquet"])
        for name in ("final_regret", "simple_regret", "seed"):
            check(table[name].equals(wanted[name]), "other numbers in", name)
    forked(*words, "--force", cwd=folder).must_succeed()
    check(tree(folder / "o").keys() == before.keys(), "left behind", sorted(tree(folder / "o")))
    return kills


def _writer(what: str, reference: Path, most: int, folder: Path, luck: random.Random) -> int:
    """What reads a store leaves it as it is, and writes its file whole or not at all."""
    writer = Writer(what, reference, folder)
    kills = 0
    for _ in range(most):
        kills += writer.strike(kill_after=luck.uniform(0, writer.seconds))
    writer.must_recover()
    return kills
