"""Charts as the page carries them: specifications, and tables by columns."""

from collections.abc import Mapping, Sequence
from typing import Any

from feelgood.report import drawing
from feelgood.report.drawing import Chart, Rows


class Packer:
    """Charts of the page; their data apart, each table once and by columns."""

    def __init__(self) -> None:
        self.charts: list[dict[str, Any]] = []
        self.datasets: dict[str, Any] = {}
        self.shared: dict[str, dict[str, Any]] = {}
        self.tables: list[dict[str, Any]] = []

    def add(
        self,
        section: str,
        problem: int,
        title: str,
        variants: Mapping[str, Chart],
        caption: str = "",
    ) -> None:
        """A chart; a variant's key names the buttons that are pressed for it."""
        specs = []
        for key, chart in variants.items():
            spec = drawing.to_spec(chart, check=False)
            for name, rows in spec.pop("datasets", {}).items():
                self.datasets.setdefault(name, pack(rows))
            spec.pop("config", None)
            specs.append((key, spec))
        switched = any(p["name"] == drawing.SHOWN for p in specs[0][1].get("params", ()))
        self.charts.append(
            {
                "section": section,
                "problem": problem,
                "title": title,
                "caption": caption,
                "variants": specs,
                "switched": switched,
            }
        )

    def keep(self, problem: int, tables: Mapping[str, Rows]) -> None:
        """The tables that the panels of a problem share, by their names there."""
        packed = {name: pack(rows) for name, rows in tables.items()}
        self.shared[str(problem)] = packed

    def add_table(
        self,
        section: str,
        problem: int,
        title: str,
        head: Sequence[str],
        rows: Sequence[Sequence[str]],
    ) -> None:
        """A table below the charts of a section; its first column names the rows."""
        cells = [list(row) for row in rows]
        self.tables.append(
            {"section": section, "problem": problem, "title": title, "head": head, "rows": cells}
        )


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
