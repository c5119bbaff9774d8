"""The charts that there are: one file each, found by the page, the command and the documents."""

import pkgutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import altair as alt
import pytest
from made_up import made_up

from feelgood import FeelgoodError
from feelgood.engine.results import AgentResult
from feelgood.report import chart_kinds, charts
from feelgood.report.chart_kinds import (
    ChartKind,
    PageChart,
    PageProblem,
    Section,
    all_charts,
    chart_names,
    find_chart,
    register_chart,
    sections,
)
from feelgood.report.page import page_data

DOCS = Path(__file__).parents[2] / "docs"


def test_a_file_is_a_chart_under_its_name() -> None:
    files = [module.name.replace("_", "-") for module in pkgutil.iter_modules(charts.__path__)]
    assert sorted(chart.name for chart in all_charts()) == sorted(files) == chart_names()


def test_the_documents_name_every_chart() -> None:
    page, commands = ((DOCS / name).read_text() for name in ("page.md", "commands.md"))
    assert f"One of {', '.join(chart_names())}." in " ".join(commands.split())
    assert all(f"`{name}`" in page for name in chart_names())


def test_an_unknown_chart_is_told_what_is_near() -> None:
    with pytest.raises(FeelgoodError, match="unknown chart 'curve': did you mean 'curves'"):
        find_chart("curve")


@pytest.fixture
def own_chart(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """What the file of a new chart does; it is gone after the test."""
    all_charts()
    monkeypatch.setattr(chart_kinds, "_REGISTERED", dict(chart_kinds._REGISTERED))

    def draw(results: Sequence[AgentResult], log_x: bool = False) -> alt.Chart:
        rows = alt.Data(values=[{"regret": r.regret.mean} for r in results])
        scale = alt.Scale(type="log" if log_x else "linear")
        return alt.Chart(rows).mark_tick().encode(x=alt.X("regret:Q", scale=scale))

    def on_page(problem: PageProblem) -> list[PageChart]:
        return [PageChart("Ticks", {"": draw([s.result for s in problem.series])})]

    register_chart(ChartKind("ticks", Section("ticks", "Ticks", "Means.", place=15), draw, on_page))
    yield "ticks"


def test_a_new_chart_is_on_the_page_and_in_the_command(own_chart: str) -> None:
    results = [made_up("lints"), made_up("lmcts")]
    assert own_chart in chart_names()
    drawn = find_chart(own_chart).draw_with(results, {"log_x": True, "band": "std", "cost": None})
    assert drawn.to_dict()["encoding"]["x"]["scale"]["type"] == "log"
    assert [section.id for section in sections()][:3] == ["curves", "ticks", "final"]
    data = page_data(results)
    assert [c["title"] for c in data["charts"] if c["section"] == own_chart] == ["Ticks"]
