"""How far a study is: what is done, running, missing, and how long the rest will take."""

import dataclasses
from collections.abc import Iterable, Iterator

from feelgood.engine.results import AgentResult
from feelgood.studies.batches import running_cells
from feelgood.studies.planning import Cell, Study
from feelgood.studies.store import Reading, Store


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
    """The study, agent by agent. A cell whose file is damaged is missing, and `notify` is told."""
    reading = store.look()
    ours = {cell.id for cell in study.cells}
    present = reading.found.keys() & ours
    lost = {cell_id: reason for cell_id, reason in reading.left_out.items() if cell_id in ours}
    store.tell(Reading({cell_id: reading.found[cell_id] for cell_id in present}, lost))
    running = running_cells(store)
    groups: dict[tuple[str, str], list[Cell]] = {}
    for cell in study.cells:
        groups.setdefault((cell.testbed, cell.agent), []).append(cell)
    costs = _costs(reading.found.values())
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


def _costs(results: Iterable[AgentResult]) -> dict[tuple[str, str], float]:
    """Seconds of run time per chain-round, of each agent on each testbed in the store."""
    spent: dict[tuple[str, str], list[tuple[float, int]]] = {}
    for result in results:
        played = len(result.seeds) * result.rounds
        spent.setdefault((result.testbed, result.agent), []).append((result.run_s, played))
    return {
        key: sum(s for s, _ in parts) / sum(n for _, n in parts) for key, parts in spent.items()
    }
