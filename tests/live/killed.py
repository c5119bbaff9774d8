"""Processes that write until they are killed. Run by tests, not a test."""

import itertools
import sys
from pathlib import Path

import numpy as np


def save(file: Path, *others: Path) -> None:
    """One saved bandit after the other, under one name. JAX is not needed for it."""
    from feelgood.live.bandit_files import read_bandit, write_bandit

    several = [read_bandit(other) for other in others]
    print("ready", flush=True)
    for saved in itertools.cycle(several):
        write_bandit(file, saved)


def journal(folder: Path, log: Path | None = None) -> None:
    """Decisions and rewards, each said once the call has returned."""
    import feelgood

    bandit = feelgood.Bandit.load(folder, exact=True, log=log)
    rng = np.random.default_rng()
    print("ready", flush=True)
    while True:
        decision = bandit.act(rng.normal(size=2))
        print("act", decision.id, flush=True)
        bandit.update(decision.id, 1.0)
        print("reward", decision.id, flush=True)


def log(folder: Path, file: Path) -> None:
    """The same, with a log beside the journal."""
    journal(folder, file)


if __name__ == "__main__":
    {"save": save, "journal": journal, "log": log}[sys.argv[1]](*map(Path, sys.argv[2:]))
