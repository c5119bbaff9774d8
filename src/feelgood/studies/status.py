"""How far a study is: what is done, running, missing, and how long the rest will take."""

import dataclasses
from collections.abc import Iterator

from feelgood.studies.batches import is_running, written_plans
from feelgood.studies.spec import Cell, Study
from feelgood.studies.store import Store


@dataclasses.dataclass(frozen=True)
class Line:
    """One agent on one testbed."""

    testbed: str
    agent: str
    done: int
    running: int
    missing: int
    #: Seconds of work left on one worker; None where nothing alike has been run here.
    left_s: float | None


def status(study: Study, store: Store) -> Iterator[Line]:
    """The study, agent by agent."""
    present = store.present()
    running = {
        cell.id
        for batch in written_plans(store)
        if is_running(store, batch)
        for cell in batch.cells
    }
    groups: dict[tuple[str, str], list[Cell]] = {}
    for cell in study.cells:
        groups.setdefault((cell.testbed, cell.agent), []).append(cell)
    costs = _costs(store)
    for (testbed, agent), cells in groups.items():
        done = [c for c in cells if c.id in present]
        busy = [c for c in cells if c.id in running and c.id not in present]
        rest = [c for c in cells if c.id not in present]
        cost = costs.get((testbed, agent))
        left = None if cost is None else cost * sum(c.chain_rounds for c in rest)
        yield Line(
            testbed,
            agent,
            len(done),
            len(busy),
            len(rest) - len(busy),
            0.0 if not rest else left,
        )


def _costs(store: Store) -> dict[tuple[str, str], float]:
    """Seconds of run time a chain-round, of each agent on each testbed in the store."""
    spent: dict[tuple[str, str], list[tuple[float, int]]] = {}
    for result in store.results():
        played = len(result.seeds) * result.rounds
        spent.setdefault((result.testbed, result.agent), []).append((result.run_s, played))
    return {
        key: sum(s for s, _ in parts) / sum(n for _, n in parts) for key, parts in spent.items()
    }
