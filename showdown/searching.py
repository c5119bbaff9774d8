"""What tuned studies tried, kept beside the results: one line per candidate.

The table says which settings won, so that it also says what such a study compares.
"""

import csv
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from feelgood.studies import Cell, TunedStudy
from feelgood.studies.searches import COLUMNS, candidates_csv
from feelgood.studies.tuned_studies import AgentSearch

FILE = "searches.csv"
_FIELDS = ("study", *COLUMNS)
#: Columns that are no texts, by what reads them.
_TYPES: Mapping[str, Callable[[str], Any]] = {
    **dict.fromkeys(("testbed_settings", "searched", "settings"), json.loads),
    **dict.fromkeys(("candidate", "rounds", "first_seed", "seeds", "diverged"), int),
    "best": lambda text: text == "yes",
}
Row = dict[str, Any]


def read(folder: Path) -> list[Row]:
    """What was written; nothing where there is no file."""
    path = folder / FILE
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return [{k: _value(k, v) for k, v in line.items()} for line in csv.DictReader(file)]


def _value(name: str, text: str) -> Any:
    if name in ("study", "testbed", "agent"):
        return text
    if name in _TYPES:
        return _TYPES[name](text)
    return float(text) if text else None


def write(folder: Path, rows: Sequence[Row]) -> None:
    """All lines; no file where there are none."""
    path = folder / FILE
    if rows:
        path.write_text(candidates_csv(rows, _FIELDS))
    else:
        path.unlink(missing_ok=True)


def renewed(
    name: str, plan: TunedStudy, stores: Iterable[Path], before: Iterable[Row]
) -> list[Row]:
    """The lines of a study: from the stores where its searches are complete, else from before.

    Lines of a search that the study does not ask for any more are left out.
    """
    known = [row for row in before if row["study"] == name]
    for store in stores:
        known += [{"study": name, **row} for row in plan.rows(store)]
    return [row for search in plan.searches for row in _rows_of(search, known) or ()]


def _rows_of(search: AgentSearch, rows: Sequence[Row]) -> list[Row] | None:
    """The lines of a search, one per candidate; None where one is missing, or the best of them.

    Of lines about the same candidate the last one counts.
    """
    found = {_key(row): row for row in rows}
    own = [found.get(_cell_key(cells)) for cells in search.candidates]
    known = [row for row in own if row is not None]
    return known if len(known) == len(own) and any(row["best"] for row in known) else None


def _key(row: Mapping[str, Any]) -> str:
    names = ("testbed", "testbed_settings", "agent", "settings", "rounds", "seeds")
    return json.dumps([row[name] for name in names], sort_keys=True)


def _cell_key(cells: Sequence[Cell]) -> str:
    first = cells[0]
    return _key(
        {
            "testbed": first.testbed,
            "testbed_settings": dict(first.testbed_settings),
            "agent": first.agent,
            "settings": dict(first.settings),
            "rounds": first.rounds,
            "seeds": sum(len(cell.seeds) for cell in cells),
        }
    )


def compared(plan: TunedStudy, rows: Sequence[Row]) -> tuple[Cell, ...]:
    """The cells of the comparison, of all agents whose search is among the lines."""
    cells: dict[str, Cell] = {}
    for search in plan.searches:
        own = _rows_of(search, rows) or []
        for row in own:
            if row["best"]:
                cells |= {cell.id: cell for cell in search.compared(row["settings"])}
    return tuple(cells.values())


def unfinished(plan: TunedStudy, rows: Sequence[Row]) -> int:
    """How many searches are not among the lines."""
    return sum(_rows_of(search, rows) is None for search in plan.searches)
