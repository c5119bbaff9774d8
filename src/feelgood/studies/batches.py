"""Which cells run together, and who runs them.

Cells that differ only in numbers share one compiled program: they are played as one *batch*. What
is in a batch decides how floating-point work is laid out, and so the last bits of the results.
Therefore a batch is written down before it starts (`work/ID/plan.json`), and whoever finishes it
later, after a kill or on another worker, runs exactly that batch.
"""

import contextlib
import dataclasses
import functools
import hashlib
import json
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from feelgood.protocols import AGENTS, TESTBEDS
from feelgood.studies import atomic
from feelgood.studies.spec import Cell
from feelgood.studies.store import Store

#: The most chains of one batch. An accelerator wants many at once; on a processor's core more
#: than some tens gain nothing, and agents whose chains run one by one gain nothing from company:
#: smaller batches spread better over cores.
MOST_CHAINS, MOST_CHAINS_ON_CPU, MOST_CHAINS_ONE_BY_ONE = 1024, 50, 20


@dataclasses.dataclass(frozen=True)
class Batch:
    """Cells that run as one program, in this order."""

    cells: tuple[Cell, ...]
    plugins: tuple[str, ...] = ()

    @functools.cached_property
    def id(self) -> str:
        """Hash of the cells and their order."""
        return hashlib.sha256(" ".join(c.id for c in self.cells).encode()).hexdigest()[:24]

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
        """For `plan.json` and for workers."""
        return {"cells": [c.to_json() for c in self.cells], "plugins": list(self.plugins)}

    @classmethod
    def from_json(cls, plan: Mapping[str, Any]) -> "Batch":
        """The batch that `to_json` described."""
        cells = tuple(Cell.from_json(spec) for spec in plan["cells"])
        return cls(cells, tuple(str(p) for p in plan["plugins"]))


def make_batches(cells: Iterable[Cell], platform: str, plugins: Sequence[str]) -> list[Batch]:
    """Group cells of one shape; cut groups that are too large at cell boundaries."""
    groups: dict[str, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(_shape(cell), []).append(cell)
    batches = []
    for group in groups.values():
        most = _most_chains(group[0], platform)
        part: list[Cell] = []
        for cell in sorted(group, key=lambda c: c.seeds[0]):
            if part and sum(len(c.seeds) for c in part) + len(cell.seeds) > most:
                batches.append(Batch(tuple(part), tuple(plugins)))
                part = []
            part.append(cell)
        batches.append(Batch(tuple(part), tuple(plugins)))
    return batches


def _most_chains(cell: Cell, platform: str) -> int:
    if platform != "cpu":
        return MOST_CHAINS
    return MOST_CHAINS_ONE_BY_ONE if _one_by_one(cell) else MOST_CHAINS_ON_CPU


def _one_by_one(cell: Cell) -> bool:
    """Whether the chains of its agent run one by one on a processor."""
    policy = AGENTS[cell.agent].build(cell.settings)
    spec = TESTBEDS[cell.testbed].build(cell.testbed_settings).spec
    return policy.chains_per_program(spec) == 1


def _shape(cell: Cell) -> str:
    """What cells of one batch have in common: all but numbers that a program takes as input."""
    rules = AGENTS[cell.agent].settings
    fixed = {name: value for name, value in cell.settings.items() if rules[name].static}
    testbed = [cell.testbed, dict(cell.testbed_settings)]
    run = [cell.agent, fixed, cell.rounds, cell.posterior_every]
    return json.dumps([testbed, *run], sort_keys=True)


class Claim:
    """The right to run a batch; it ends with this process at the latest."""

    def __init__(self, store: Store, batch: Batch) -> None:
        self.batch = batch
        self.folder = batch_folder(store, batch)
        self._lock = atomic.Lock(self.folder / "lock")

    def take(self) -> bool:
        """Take it, unless somebody else has it."""
        return self._lock.take(wait=False)

    def finish(self) -> None:
        """The batch is done: nothing in its folder is needed any more."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self._lock.release()

    def release(self) -> None:
        """Leave the batch to somebody else, with the progress made."""
        self._lock.release()


def batch_folder(store: Store, batch: Batch) -> Path:
    """Where a batch keeps its plan, its lock and its checkpoints."""
    return store.work_folder / batch.id


def plan(store: Store, cells: Sequence[Cell], platform: str, plugins: Sequence[str]) -> list[Batch]:
    """The batches that still have to run: those begun earlier, and new ones for the rest.

    New batches are written down at once, so that every process that works on the store cuts the
    work alike.
    """
    with store.lock:
        present = store.present()
        missing = {cell.id: cell for cell in cells if cell.id not in present}
        ours = {cell.id for cell in cells}
        begun = []
        for batch in written_plans(store):
            ids = {cell.id for cell in batch.cells}
            if ids <= ours and ids & missing.keys():
                begun.append(batch)
                for cell_id in ids:
                    missing.pop(cell_id, None)
        new = make_batches(missing.values(), platform, plugins)
        for batch in new:
            text = json.dumps(batch.to_json(), indent=1).encode()
            place = batch_folder(store, batch) / "plan.json"
            atomic.write(place, functools.partial(_fill, text))
    order = {cell.id: i for i, cell in enumerate(cells)}

    def turn(batch: Batch) -> tuple[bool, int]:
        # Chains that run one by one take longest: first, so that no core waits for the last.
        later = platform == "cpu" and not _one_by_one(batch.cells[0])
        return later, min(order[c.id] for c in batch.cells)

    return sorted(begun + new, key=turn)


def _fill(content: bytes, file: IO[bytes]) -> None:
    file.write(content)


def written_plans(store: Store) -> Iterator[Batch]:
    """The batches that were planned and are not finished."""
    for file in sorted(store.work_folder.glob("*/plan.json")):
        # A plan that cannot be read was left by something else: its cells are planned anew.
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            yield Batch.from_json(json.loads(file.read_bytes()))


def is_running(store: Store, batch: Batch) -> bool:
    """Whether somebody holds the batch's lock now."""
    claim = Claim(store, batch)
    if not claim.folder.exists():
        return False
    free = claim.take()
    claim.release()
    return not free
