"""From published rows to runs and back: the cells to run, the results that belong to each row."""

import dataclasses
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from feelgood.core.arguments import Seeds, parse_rounds, parse_seeds
from feelgood.core.errors import FeelgoodError
from feelgood.engine.results import AgentResult
from feelgood.paper.tables import Row, missing
from feelgood.paper.tables import rows as published_rows
from feelgood.studies.files import SOURCES
from feelgood.studies.planning import Cell, Study, plan_cells
from feelgood.studies.store import Store

if TYPE_CHECKING:
    from feelgood.report.tables import Comparison


@dataclasses.dataclass(frozen=True)
class Plan:
    """Rows of a table, and for each the cells that it needs or why it cannot be run."""

    rows: tuple[Row, ...]
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
                found.append(merged[0] if merged else "it has not been run")
        return found


def plan_rows(
    rows: Sequence[Row], *, seeds: Seeds | None = None, rounds: int | None = None
) -> Plan:
    """What to run for these rows; by default with the published number of seeds and rounds."""
    if seeds is not None:
        parse_seeds(seeds)
    if rounds is not None:
        parse_rounds(rounds)
    return Plan(tuple(rows), tuple(_cells(row, seeds, rounds) for row in rows))


@SOURCES.register("table")
def cells_of_tables(
    names: Sequence[str],
    *,
    testbeds: Sequence[str],
    agents: Sequence[str],
    seeds: Seeds | None,
    rounds: int | None,
) -> tuple[Cell, ...]:
    """All cells of these tables, or of some of their rows; an error where one cannot be run."""
    chosen = [row for name in names for row in published_rows(name, testbeds, agents)]
    plan = plan_rows(chosen, seeds=seeds, rounds=rounds)
    for cells in plan.cells:
        if isinstance(cells, str):
            raise FeelgoodError(f"{cells}.")
    study = plan.study("table")
    return study.cells if study is not None else ()


def _cells(row: Row, seeds: Seeds | None, rounds: int | None) -> tuple[Cell, ...] | str:
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
            )
        )
    except FeelgoodError as error:
        # A data set that is not here, for example: the other rows can be run all the same.
        return str(error).rstrip(".")


def in_words(comparisons: "Sequence[Comparison]") -> str:
    """What a table of comparisons shows, in two plain sentences."""
    from feelgood.report.tables import Verdict

    compared = [c for c in comparisons if c.verdict in (Verdict.AGREES, Verdict.DIFFERS)]
    if not compared:
        return "No row can be compared with the paper: the table says why."
    differing = [c.label for c in compared if c.verdict is Verdict.DIFFERS]
    first = f"{len(compared) - len(differing)} of {len(compared)} rows agree with the paper"
    if differing:
        first += f"; {', '.join(differing[:3])}"
        first += f" and {len(differing) - 3} others" if len(differing) > 3 else ""
        first += " differ" if len(differing) > 1 else " differs"
    by_testbed: dict[str, list[Comparison]] = {}
    for c in compared:
        if c.ours is not None and c.ours.count:
            by_testbed.setdefault(c.row.testbed, []).append(c)
    pairs = {name: _best(rows) for name, rows in by_testbed.items() if len(rows) > 1}
    if not pairs:
        return f"{first}."
    if len(pairs) == 1:
        ((name, (ours, theirs)),) = pairs.items()
        assert ours.ours is not None
        second = (
            f"Of these agents {ours.label} has the lowest regret on {name}, {ours.ours.mean:,.1f} "
            f"on average; in the paper it is {theirs.label} with {theirs.row.published.mean:,.1f}"
        )
    else:
        same = sum(ours.row.agent == theirs.row.agent for ours, theirs in pairs.values())
        second = (
            f"The agent with the lowest regret is the paper's on {same} of {len(pairs)} testbeds"
        )
    return f"{first}. {second}."


def _best(rows: "Sequence[Comparison]") -> "tuple[Comparison, Comparison]":
    """The row with the lowest mean of ours, and that of the paper."""
    ours = min(rows, key=lambda c: c.ours.mean if c.ours is not None else math.inf)
    return ours, min(rows, key=lambda c: c.row.published.mean)
