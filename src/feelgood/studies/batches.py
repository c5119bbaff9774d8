"""Which cells run together, and who runs them.

Cells that differ only in numbers share one compiled program: they are played as one *batch*. What
is in a batch decides how floating-point work is laid out, and so the last bits of the results.
Therefore batches are written down before they start, in `work/plan-….jsonl`, one line per batch
with the names of its cells. Whoever finishes one later, after a kill or on another worker, runs
exactly that batch. What those cells are, and which plug-ins they need, the study says. Nothing
that a store holds is ever imported.
"""

import dataclasses
import functools
import hashlib
import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from feelgood.core import atomic
from feelgood.core.policy import AGENTS
from feelgood.core.settings import Setting
from feelgood.studies.locks import Lock
from feelgood.studies.planning import Cell, outline
from feelgood.studies.store import Store

#: The most chains of one batch. An accelerator wants many at once. On a processor's core more than
#: some tens gain nothing, and smaller batches spread better over cores. Chains that run one by one
#: gain nothing from each other.
MOST_CHAINS, MOST_CHAINS_ON_CPU, MOST_CHAINS_ONE_BY_ONE = 1024, 50, 20


def _batch_id(cell_ids: Sequence[str]) -> str:
    return hashlib.sha256(" ".join(cell_ids).encode()).hexdigest()[:24]


@dataclasses.dataclass(frozen=True)
class CellBatch:
    """Cells that run as one program, in this order."""

    cells: tuple[Cell, ...]
    plugins: tuple[str, ...] = ()

    @functools.cached_property
    def id(self) -> str:
        """Hash of the cells and their order."""
        return _batch_id([cell.id for cell in self.cells])

    @property
    def chain_rounds(self) -> int:
        """How much there is to play."""
        return sum(cell.chain_rounds for cell in self.cells)

    @property
    def label(self) -> str:
        """What runs, for people."""
        first = self.cells[0]
        settings = len({json.dumps(dict(c.settings), sort_keys=True) for c in self.cells})
        chains = sum(len(c.seeds) for c in self.cells)
        sweep = f", {settings} settings" if settings > 1 else ""
        return f"{first.label}{sweep}, {chains} chains"

    def to_json(self) -> dict[str, object]:
        """For workers."""
        return {"cells": [c.to_json() for c in self.cells], "plugins": list(self.plugins)}

    @classmethod
    def from_json(cls, plan: Mapping[str, Any]) -> "CellBatch":
        """The batch that `to_json` described."""
        cells = tuple(Cell.from_json(spec) for spec in plan["cells"])
        return cls(cells, tuple(str(p) for p in plan["plugins"]))


def make_batches(cells: Iterable[Cell], platform: str, plugins: Sequence[str]) -> list[CellBatch]:
    """Group cells of one shape; cut groups that are too large at cell boundaries."""
    groups: dict[str, list[Cell]] = {}
    shape = _Shapes()
    for cell in cells:
        groups.setdefault(shape(cell), []).append(cell)
    batches = []
    for group in groups.values():
        most = _most_chains(group[0], platform)
        part: list[Cell] = []
        chains = 0
        for cell in sorted(group, key=lambda c: c.seeds[0]):
            if part and chains + len(cell.seeds) > most:
                batches.append(CellBatch(tuple(part), tuple(plugins)))
                part, chains = [], 0
            part.append(cell)
            chains += len(cell.seeds)
        batches.append(CellBatch(tuple(part), tuple(plugins)))
    return batches


def _most_chains(cell: Cell, platform: str) -> int:
    if platform != "cpu":
        return MOST_CHAINS
    return MOST_CHAINS_ONE_BY_ONE if _one_by_one(cell) else MOST_CHAINS_ON_CPU


def _one_by_one(cell: Cell) -> bool:
    """Whether the chains of its agent run one by one on a processor."""
    policy = AGENTS[cell.agent].build(cell.settings)
    _, spec, _ = outline(cell.testbed, cell.testbed_settings)
    return policy.hints(spec).company == "none"


class _Shapes:
    """What cells of one batch have in common: all but numbers that a program takes as input."""

    def __init__(self) -> None:
        self._rules: dict[str, Mapping[str, Setting]] = {}

    def __call__(self, cell: Cell) -> str:
        rules = self._rules.get(cell.agent)
        if rules is None:
            rules = self._rules[cell.agent] = AGENTS[cell.agent].settings
        # A word shapes the program too, also where a number could stand.
        fixed = {
            name: value
            for name, value in cell.settings.items()
            if rules[name].static or isinstance(value, str)
        }
        testbed = [cell.testbed, dict(cell.testbed_settings)]
        run = [cell.agent, fixed, cell.rounds, cell.posterior_every]
        return json.dumps([testbed, *run], sort_keys=True)


class Claim:
    """The right to run a batch; it ends with this process at the latest."""

    def __init__(self, store: Store, batch_id: str) -> None:
        self.folder = store.work_folder / batch_id
        self._lock = Lock(self.folder / "lock")

    def take(self) -> bool:
        """Take it, unless somebody else has it."""
        taken = self._lock.take(wait=False)
        if taken:
            atomic.remove_leftovers(self.folder)
        return taken

    def finish(self) -> None:
        """The batch is done: nothing in its folder is needed any more."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self._lock.release()

    def release(self) -> None:
        """Leave the batch to somebody else, with the progress made."""
        self._lock.release()


def batch_folder(store: Store, batch: CellBatch) -> Path:
    """Where a batch keeps its lock and its checkpoints while it runs."""
    return store.work_folder / batch.id


def plan(
    store: Store, cells: Sequence[Cell], platform: str, plugins: Sequence[str]
) -> list[CellBatch]:
    """The batches that still have to run: those begun earlier, and new ones for the rest.

    New batches are written down at once, so that every process that works on the store cuts the
    work alike.
    """
    order = {cell.id: i for i, cell in enumerate(cells)}
    with store.lock:
        present = store.present()
        missing = order.keys() - present
        begun = []
        for ids in _tidied(store, present):
            if all(i in order for i in ids) and any(i in missing for i in ids):
                begun.append(CellBatch(tuple(cells[order[i]] for i in ids), tuple(plugins)))
                missing.difference_update(ids)
        new = make_batches((cell for cell in cells if cell.id in missing), platform, plugins)
        if new:
            text = "".join(json.dumps([c.id for c in batch.cells]) + "\n" for batch in new)
            file = store.work_folder / f"plan-{_batch_id([batch.id for batch in new])}.jsonl"
            atomic.write(file, lambda out: out.write(text.encode()))
    slow = _remembered(_one_by_one)

    def turn(batch: CellBatch) -> tuple[bool, int]:
        # Chains that run one by one take longest: first, so that no core waits for the last.
        later = platform == "cpu" and not slow(batch.cells[0])
        return later, min(order[c.id] for c in batch.cells)

    return sorted(begun + new, key=turn)


def _remembered(ask: Callable[[Cell], bool]) -> Callable[[Cell], bool]:
    """The same answer for all cells of one shape, which is asked for once."""
    known: dict[str, bool] = {}
    shape = _Shapes()

    def answer(cell: Cell) -> bool:
        which = shape(cell)
        if which not in known:
            known[which] = ask(cell)
        return known[which]

    return answer


def running_cells(store: Store) -> set[str]:
    """The cells of the batches that somebody is running now."""
    if not store.work_folder.is_dir():
        return set()
    begun = {entry.name for entry in store.work_folder.iterdir() if entry.is_dir()}
    batches = [ids for _, some in _written(store) for ids in some if _batch_id(ids) in begun]
    try:
        return {i for ids in batches if is_running(store, _batch_id(ids)) for i in ids}
    except atomic.LostWrite:
        store.notify(f"{store.path} may only be read: what is running now counts as missing.")
        return set()


def _written(store: Store) -> Iterator[tuple[Path, list[tuple[str, ...]]]]:
    for file in sorted(store.work_folder.glob("plan-*.jsonl")):
        with atomic.reading(file):
            lines = file.read_bytes().splitlines()
        batches = []
        for line in lines:
            try:
                ids = json.loads(line)
            except ValueError:
                continue  # damaged: its cells are planned anew
            if isinstance(ids, list) and ids and all(isinstance(i, str) for i in ids):
                batches.append(tuple(ids))
        yield file, batches


def tidy(store: Store) -> None:
    """Remove what finished batches and killed processes have left."""
    with store.lock:
        _tidied(store, store.present())


def _tidied(store: Store, present: set[str]) -> list[tuple[str, ...]]:
    """The batches that are not finished; what others have left is removed. Under the lock.

    A batch in progress has its folder. One of which some cells are there, and no folder, was
    finished, and the other cells were lost later: those are planned anew.
    """
    begun = {entry.name for entry in store.work_folder.iterdir() if entry.is_dir()}
    unfinished = []
    for file, batches in _written(store):
        left = []
        for ids in batches:
            there = sum(i in present for i in ids)
            if not there or (there < len(ids) and _batch_id(ids) in begun):
                left.append(ids)
        if not left:
            file.unlink(missing_ok=True)
        unfinished += left
    for name in begun - {_batch_id(ids) for ids in unfinished}:
        claim = Claim(store, name)
        if claim.take():
            claim.finish()
    for folder, of in (
        (store.path, store.manifest.name),
        (store.cells_folder, "*.parquet"),
        (store.work_folder, "plan-*"),
    ):
        atomic.remove_leftovers(folder, of)
    return unfinished


def is_running(store: Store, batch_id: str) -> bool:
    """Whether somebody holds the batch's lock now."""
    claim = Claim(store, batch_id)
    if not claim.folder.exists():
        return False
    free = claim.take()
    claim.release()
    return not free
