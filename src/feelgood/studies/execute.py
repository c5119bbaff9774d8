"""Run one batch: build the agents, play, and cut the outcome into cells."""

import dataclasses
import datetime
import functools
import platform
import subprocess
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax

from feelgood.core.errors import FeelgoodError
from feelgood.core.notices import print_notice
from feelgood.core.plugins import load_plugins
from feelgood.core.policy import AGENTS
from feelgood.core.registry import Registry
from feelgood.core.testbed import TESTBEDS
from feelgood.engine.building import measured_in
from feelgood.engine.compiling import keep_compiled_programs
from feelgood.engine.results import AgentResult
from feelgood.engine.simulation import Outcome, simulate
from feelgood.studies.batches import CellBatch
from feelgood.studies.folder_checkpoints import FolderCheckpoints
from feelgood.studies.planning import Cell, code_of

if TYPE_CHECKING:
    from feelgood.posterior.along import PosteriorWatch


def execute(
    batch: CellBatch,
    checkpoints: FolderCheckpoints,
    progress: Callable[[int], None],
    notify: Callable[[str], None] = print_notice,
) -> Iterator[tuple[Cell, AgentResult]]:
    """Play a batch and yield its cells; `progress(n)` is called after every n chain-rounds.

    `notify` gets a sentence where the chains do not fit into the device's memory together.
    """
    keep_compiled_programs()
    load_plugins(batch.plugins)
    first = batch.cells[0]
    _check_code(first)
    testbed = TESTBEDS[first.testbed].build(first.testbed_settings)
    watch = None
    if first.posterior_every is not None:
        from feelgood.posterior.along import posterior_watch

        watch = posterior_watch(first.posterior_every, first.testbed, testbed)
    for part, columns in enumerate(_parts(batch)):
        progress_of_part = checkpoints.of(str(part))
        outcome = simulate(
            testbed,
            [AGENTS[c.agent].build(c.settings) for c in columns[0]],
            rounds=first.rounds,
            seeds=[seed for column in columns for seed in column[0].seeds],
            progress=progress,
            workers=1,  # the same work for the same bits, whatever the machine; see `engines`
            checkpoints=progress_of_part,
            notify=notify,
            along=watch,
        )
        yield from _cut(outcome, columns, batch.id, progress_of_part, watch)


def _cut(
    outcome: Outcome,
    columns: Sequence[Sequence[Cell]],
    batch_id: str,
    checkpoints: FolderCheckpoints,
    watch: "PosteriorWatch | None",
) -> Iterator[tuple[Cell, AgentResult]]:
    """The outcome of a part of a batch, cell by cell; `columns` are seed blocks × settings."""
    chains = sum(len(cell.seeds) for column in columns for cell in column)
    # Of a run that went on from checkpoints, also what it took to come so far.
    before, cost = checkpoints.before, checkpoints.cost
    compile_s = before.compile_s + outcome.compile_s
    run_s = before.seconds - before.compile_s + outcome.run_s
    stamp = provenance() | {
        "started": datetime.datetime.fromtimestamp(cost.started, datetime.UTC).isoformat(),
        "duration_s": cost.seconds,
        "batch": batch_id,
        "batch_chains": chains,
    }
    low = 0
    for column in columns:
        own = slice(low, low + len(column[0].seeds))
        for setting, cell in enumerate(column):
            result = AgentResult(
                agent=cell.agent,
                testbed=cell.testbed,
                settings=cell.settings,
                testbed_settings=cell.testbed_settings,
                rounds=cell.rounds,
                seeds=cell.seeds,
                **measured_in(outcome, setting, own),
                posterior=None if watch is None else watch.collect(outcome, setting, own),
                # The cell's share, so that the seconds of a batch's cells add up to it.
                compile_s=compile_s * len(cell.seeds) / chains,
                run_s=run_s * len(cell.seeds) / chains,
                provenance=stamp,
            )
            yield cell, result
        low = own.stop


def _check_code(cell: Cell) -> None:
    """Refuse to run other code than what the cell's name stands for."""
    found = code_of(cell.testbed, cell.agent)
    for kind, name in (("testbed", cell.testbed), ("agent", cell.agent)):
        registry: Registry[Any] = TESTBEDS if kind == "testbed" else AGENTS
        if name in registry and found.get(kind) != cell.code.get(kind):
            raise FeelgoodError(
                f"the plug-in that registers the {kind} '{name}' is another one here than when "
                "the study was planned: run the same command again."
            )


def _parts(batch: CellBatch) -> Iterator[list[list[Cell]]]:
    """The batch as full grids, seed blocks × settings, of agents that share their structure.

    Almost always this is one grid; a study that gained seeds or settings can leave a ragged one.
    """
    by_structure: dict[Any, dict[tuple[int, ...], list[Cell]]] = {}
    for cell in batch.cells:
        structure = jax.tree.structure(AGENTS[cell.agent].build(cell.settings))
        by_structure.setdefault(structure, {}).setdefault(cell.seeds, []).append(cell)
    for columns in by_structure.values():
        grids: dict[str, list[list[Cell]]] = {}
        for column in columns.values():
            ordered = sorted(column, key=_settings_key)
            grids.setdefault(" ".join(map(_settings_key, ordered)), []).append(ordered)
        yield from grids.values()


def _settings_key(cell: Cell) -> str:
    return dataclasses.replace(cell, seeds=()).id


@functools.cache
def provenance() -> dict[str, str | None]:
    """With what a result was made."""
    device = jax.devices()[0]
    return {
        "feelgood": version("feelgood"),
        "jax": version("jax"),
        "python": platform.python_version(),
        "device": f"{device.device_kind} ({device.platform})",
        "commit": _commit(),
    }


def _commit() -> str | None:
    """The commit of the source tree, where the package runs from one; + marks changes."""
    root = Path(__file__).resolve().parents[3]
    if not (root / ".git").exists():
        return None

    def git(*words: str) -> str:
        done = subprocess.run(
            ["git", "-C", str(root), *words], capture_output=True, text=True, check=True, timeout=20
        )
        return done.stdout.strip()

    try:
        changed = git("status", "--porcelain", "--untracked-files=no")
        return git("rev-parse", "HEAD") + ("+" if changed else "")
    except (OSError, subprocess.SubprocessError):
        return None
