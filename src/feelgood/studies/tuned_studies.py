"""Studies whose agents are tuned first: a search on held-out seeds, then the comparison.

Both are ordinary cells. Those of the search are in a store of their own, the folder `search` of the
study's. Which settings win is a function of their results alone. So an interrupted study goes on as
any other does, and the comparison of an agent on a testbed is known once its search is complete.
"""

import dataclasses
import functools
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from feelgood.core import atomic
from feelgood.core.arguments import Seeds, parse_rounds
from feelgood.engine.building import SettingValues
from feelgood.engine.results import AgentResult
from feelgood.studies.candidates import (
    BUDGET,
    HELD_OUT_SEEDS,
    comparison_seeds,
    held_out_seeds,
    make_candidates,
)
from feelgood.studies.merging import merge_seeds
from feelgood.studies.planning import Cell, Study, StudyPart, plan_cells, seed_blocks
from feelgood.studies.searches import best_candidate, candidate_rows, candidates_csv
from feelgood.studies.store import Store

#: The search's own store, inside that of its study.
SEARCH_FOLDER = "search"


@dataclasses.dataclass(frozen=True)
class AgentSearch:
    """An agent on a testbed: what is tried, and what is compared once the best is known."""

    #: Cells of each candidate, on held-out seeds.
    candidates: tuple[tuple[Cell, ...], ...]
    #: Cells of the comparison, with the settings of the first candidate.
    comparison: tuple[Cell, ...]

    def results(self, found: Mapping[str, AgentResult]) -> list[AgentResult] | None:
        """One result per candidate, from those of cells by id; None while some are missing."""
        cells = [cell.id for own in self.candidates for cell in own]
        if any(cell not in found for cell in cells):
            return None
        return [merge_seeds(found[cell.id] for cell in own)[0] for own in self.candidates]

    def tuned(self, found: Mapping[str, AgentResult]) -> list[Cell]:
        """The comparison with the best settings; nothing while the search is not complete."""
        results = self.results(found)
        if results is None:
            return []
        return self.compared(self.candidates[best_candidate(results)][0].settings)

    def compared(self, settings: SettingValues) -> list[Cell]:
        """The comparison with these settings."""
        return [dataclasses.replace(cell, settings=settings) for cell in self.comparison]


@dataclasses.dataclass(frozen=True)
class TunedStudy:
    """A study with a search before it. `Study` has the same methods."""

    name: str
    searches: tuple[AgentSearch, ...]
    plugins: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse what is too large, the search and the comparison alike."""
        Study(self.name, _each_once(cell for search in self.searches for cell in search.comparison))
        _ = self.search

    @functools.cached_property
    def search(self) -> Study:
        """All candidates of all agents."""
        cells = _each_once(
            cell for search in self.searches for own in search.candidates for cell in own
        )
        return Study(f"{self.name}-{SEARCH_FOLDER}", cells, self.plugins)

    def parts(self, folder: Path) -> list[StudyPart]:
        """The search, and the comparison of all agents whose search in this folder is complete."""
        table = folder / f"{self.name}-{SEARCH_FOLDER}.csv"
        search = StudyPart(
            self.search, folder / SEARCH_FOLDER, table, lambda: self._write(table, folder)
        )
        found = self._found(folder)
        cells = _each_once(cell for search in self.searches for cell in search.tuned(found))
        comparison = [StudyPart(Study(self.name, cells, self.plugins), folder)] if cells else []
        return [search, *comparison]

    def rows(self, folder: Path) -> list[dict[str, Any]]:
        """One row per candidate of each search that is complete."""
        found = self._found(folder)
        complete = (search.results(found) for search in self.searches)
        return [row for results in complete if results for row in candidate_rows(results)]

    def _found(self, folder: Path) -> dict[str, AgentResult]:
        """The results of the search's cells that are there, by id."""
        with atomic.reading(folder):
            begun = (folder / SEARCH_FOLDER).exists()
        if not begun:
            return {}
        store = Store(folder / SEARCH_FOLDER, create=False)
        return {cell.id: result for cell, result in store.done(self.search.cells)}

    def _write(self, table: Path, folder: Path) -> None:
        content = candidates_csv(self.rows(folder)).encode()
        with atomic.reading(table):
            same = table.exists() and table.read_bytes() == content
        if not same:  # a finished store may be one to read only
            atomic.write(table, lambda file: file.write(content))


def _each_once(cells: Iterable[Cell]) -> tuple[Cell, ...]:
    """The cells; one that two searches need is run once."""
    return tuple({cell.id: cell for cell in cells}.values())


def plan_searches(
    testbed: str | Any,
    agent: str | Any,
    *,
    seeds: Seeds = 10,
    budget: int | Any = BUDGET,
    search_rounds: int | Any | None = None,
    search_seeds: int | Any = HELD_OUT_SEEDS,
    **plan: Any,
) -> list[AgentSearch]:
    """The searches of one agent on one testbed: one per setting of its grid.

    **Arguments:**

    - `testbed`, `agent`, `seeds` and what else `plan_cells` takes: the comparison. Settings that
      are given by name are not searched.
    - `budget`: how many candidates, the agent as it is among them.
    - `search_rounds`: of each; by default those of the comparison.
    - `search_seeds`: how many seeds, from 1,000,000 on.
    """
    held_out = seed_blocks(held_out_seeds(search_seeds))
    length = None if search_rounds is None else parse_rounds(search_rounds)
    variants: dict[str, list[Cell]] = {}
    for cell in plan_cells(testbed, agent, seeds=comparison_seeds(seeds), **plan):
        variants.setdefault(json.dumps(dict(cell.settings)), []).append(cell)
    fixed = frozenset(plan.get("settings") or ())
    searches = []
    for cells in variants.values():
        first = dataclasses.replace(
            cells[0], rounds=length or cells[0].rounds, posterior_every=None
        )
        candidates = tuple(
            tuple(dataclasses.replace(first, settings=one, seeds=block) for block in held_out)
            for one in make_candidates(first.agent, first.settings, budget, fixed)
        )
        searches.append(AgentSearch(candidates, tuple(cells)))
    return searches
