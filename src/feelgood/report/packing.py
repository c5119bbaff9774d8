"""Charts as the page carries them: specifications, and tables by columns."""

from collections.abc import Mapping, Sequence
from typing import Any

from feelgood.report.chart_kinds import PageChart, PageTable
from feelgood.report.rendering import ChartRows, to_spec
from feelgood.report.style import SHOWN_SERIES


class Packer:
    """Charts of the page, and apart from them their data: each table once, by columns."""

    def __init__(self) -> None:
        self.charts: list[dict[str, Any]] = []
        self.datasets: dict[str, Any] = {}
        self.shared: dict[str, dict[str, Any]] = {}
        self.tables: list[dict[str, Any]] = []

    def add(self, section: str, problem: int, part: PageChart | PageTable) -> None:
        """Add a chart or a table to a section of one of the page's problems."""
        if isinstance(part, PageTable):
            self.tables.append(
                {
                    "section": section,
                    "problem": problem,
                    "title": part.title,
                    "head": part.head,
                    "rows": [list(row) for row in part.rows],
                }
            )
            return
        specs = []
        for key, chart in part.variants.items():
            spec = to_spec(chart, check=False)
            for name, rows in spec.pop("datasets", {}).items():
                self.datasets.setdefault(name, pack(rows))
            spec.pop("config", None)
            specs.append((key, spec))
        switched = any(p["name"] == SHOWN_SERIES for p in specs[0][1].get("params", ()))
        self.charts.append(
            {
                "section": section,
                "problem": problem,
                "title": part.title,
                "caption": part.caption,
                "variants": specs,
                "switched": switched,
            }
        )

    def keep(self, problem: int, tables: Mapping[str, ChartRows]) -> None:
        """The tables that the panels of a problem share, by their names there."""
        packed = {name: pack(rows) for name, rows in tables.items()}
        self.shared[str(problem)] = packed


def pack(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Rows as columns; words that repeat are numbered."""
    fields = list(rows[0]) if rows else []
    columns: list[Any] = []
    for field in fields:
        column = [row[field] for row in rows]
        if all(isinstance(value, str) for value in column):
            words = list(dict.fromkeys(column))
            where = {word: i for i, word in enumerate(words)}
            columns.append({"words": words, "index": [where[word] for word in column]})
        else:
            whole = [int(v) if isinstance(v, float) and v.is_integer() else v for v in column]
            columns.append(whole)
    return {"fields": fields, "length": len(rows), "columns": columns}
