"""From published rows to runs and back: the cells to run, the results that belong to each row."""

import dataclasses
from collections.abc import Sequence

from feelgood.core.arguments import Seeds, parse_rounds, parse_seeds
from feelgood.core.errors import FeelgoodError
from feelgood.engine.results import AgentResult
from feelgood.paper.published_rows import PublishedRow, missing
from feelgood.paper.published_rows import rows as published_rows
from feelgood.studies.files import SOURCES
from feelgood.studies.planning import Cell, Study, plan_cells
from feelgood.studies.store import Store

#: Why there is no result of a run that nothing hinders.
NOT_YET = "it has not been run"


@dataclasses.dataclass(frozen=True)
class ComparisonPlan:
    """Rows of a table, and for each the cells that it needs or why it cannot be run."""

    rows: tuple[PublishedRow, ...]
    cells: tuple[tuple[Cell, ...] | str, ...]

    def study(self, name: str) -> Study | None:
        """All cells, each once, as a study; None where nothing can be run."""
        unique = {c.id: c for cells in self.cells if not isinstance(cells, str) for c in cells}
        return Study(name, tuple(unique.values())) if unique else None

    def results(self, store: Store) -> list[AgentResult | str]:
        """For each row our result over the seeds that are done, or why there is none."""
        found: list[AgentResult | str] = []
        for cells in self.cells:
            if isinstance(cells, str):
                found.append(cells)
            else:
                merged = store.results(cells)
                found.append(merged[0] if merged else NOT_YET)
        return found


def plan_rows(
    rows: Sequence[PublishedRow], *, seeds: Seeds | None = None, rounds: int | None = None
) -> ComparisonPlan:
    """What to run for these rows; by default with the published number of seeds and rounds."""
    if seeds is not None:
        parse_seeds(seeds)
    if rounds is not None:
        parse_rounds(rounds)
    return ComparisonPlan(tuple(rows), tuple(_cells(row, seeds, rounds) for row in rows))


@SOURCES.register("table")
def cells_of_tables(
    names: Sequence[str],
    *,
    testbeds: Sequence[str],
    agents: Sequence[str],
    seeds: Seeds | None,
    rounds: int | None,
    reading: str = "paper",
) -> tuple[Cell, ...]:
    """All cells of these tables, or of some of their rows; an error where one cannot be run."""
    chosen = [row for name in names for row in published_rows(name, testbeds, agents, reading)]
    plan = plan_rows(chosen, seeds=seeds, rounds=rounds)
    for cells in plan.cells:
        if isinstance(cells, str):
            raise FeelgoodError(f"{cells}.")
    study = plan.study("table")
    return study.cells if study is not None else ()


def _cells(row: PublishedRow, seeds: Seeds | None, rounds: int | None) -> tuple[Cell, ...] | str:
    absent = missing(row)
    if absent is not None:
        return absent
    try:
        return tuple(
            plan_cells(
                row.testbed,
                row.agent,
                settings=row.settings,
                preset=row.preset,
                rounds=rounds or row.rounds,
                seeds=seeds or row.published.seeds,
                testbed_settings=row.testbed_settings,
            )
        )
    except FeelgoodError as error:
        # A data set that is not here, for example: the other rows can be run all the same.
        return str(error).rstrip(".")
