"""The charts that there are: the page, `feelgood plot` and the documents read them from here.

A file in `report/charts` registers one chart, under the name of the file. This module imports no
chart before one is asked for, so that help texts can name them all at once.
"""

import dataclasses
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from feelgood.core.errors import FeelgoodError, did_you_mean
from feelgood.report import charts

if TYPE_CHECKING:
    from feelgood.report.published_comparisons import PublishedComparison
    from feelgood.report.rendering import Chart
    from feelgood.report.series import Series
    from feelgood.report.style import Style


@dataclasses.dataclass(frozen=True)
class Section:
    """A part of the page with charts, and the buttons that choose between their variants.

    **Example:**

    >>> from feelgood.report.chart_kinds import Section
    >>> Section("ticks", "Every seed", "The final regret of every seed.", place=25).title
    'Every seed'
    """

    id: str
    title: str
    about: str
    controls: tuple[Mapping[str, Any], ...] = ()
    #: Sections come in the order of their places.
    place: int = 100


#: Buttons that set a signal of the charts; the others choose between variants.
ALL_BANDS = {"name": "bands", "label": "All bands", "signal": True}
WHOLE_AXIS = {"name": "whole", "label": "Whole axis", "signal": True}


def measure_buttons(labels: Mapping[str, str]) -> dict[str, Any]:
    """The control that chooses between measures, by the words on their buttons."""
    options = [{"key": key, "label": label} for key, label in labels.items()]
    return {"name": "measure", "label": "Measure", "options": options}


@dataclasses.dataclass(frozen=True)
class PageProblem:
    """A testbed on the page: its results, the comparisons with names, and how to draw.

    **Example:**

    >>> import feelgood
    >>> from feelgood.report.chart_kinds import PageProblem
    >>> from feelgood.report.series import name_series
    >>> from feelgood.report.style import Style
    >>> result = feelgood.run("linear-20", "uniform", rounds=20, seeds=2)
    >>> PageProblem(name_series(result.results), beside=(), style=Style(("uniform",))).name
    'linear-20'
    """

    series: "Sequence[Series]"
    beside: "Sequence[tuple[str, PublishedComparison]]"
    style: "Style"

    @property
    def name(self) -> str:
        """Its name on the page."""
        return self.series[0].problem


@dataclasses.dataclass(frozen=True)
class PageChart:
    """A chart of the page; a variant's key names the buttons that are pressed for it.

    **Example:**

    >>> import altair as alt
    >>> from feelgood.report.chart_kinds import PageChart
    >>> sorted(PageChart("Regret", {"": alt.Chart(), "log": alt.Chart()}).variants)
    ['', 'log']
    """

    title: str
    variants: "Mapping[str, Chart]"
    caption: str = ""


@dataclasses.dataclass(frozen=True)
class PageTable:
    """A table below the charts of a section; its first column names the rows."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclasses.dataclass(frozen=True)
class ChartKind:
    """One chart: its name, where the page has it, and how it is drawn.

    `draw` takes results, or the agents of a posterior analysis where it `reads` that; its other
    parameters are options of `feelgood plot`. `on_page` takes a `PageProblem`, or an analysis.

    **Example:**

    >>> import feelgood
    >>> from feelgood.report.chart_kinds import ChartKind, Section
    >>> from feelgood.report.charts.curves import regret_curves
    >>> section = Section("mine", "Mine", "Mean regret.")
    >>> mine = ChartKind("mine", section, regret_curves, on_page=lambda problem: [])
    >>> result = feelgood.run("linear-20", "uniform", rounds=20, seeds=2)
    >>> "layer" in mine.draw_with(result.results, {"log_x": True}).to_dict()
    True
    """

    name: str
    section: Section
    draw: "Callable[..., Chart]"
    on_page: "Callable[[Any], Sequence[PageChart | PageTable]]"
    reads: Literal["results", "analysis"] = "results"

    def draw_with(self, read: Sequence[Any], options: Mapping[str, Any]) -> "Chart":
        """Draw with those of the options that are given and that this chart has."""
        known = inspect.signature(self.draw).parameters
        own = {k: v for k, v in options.items() if k in known and v is not None}
        return self.draw(read, **own)


_REGISTERED: dict[str, ChartKind] = {}


def register_chart(chart: ChartKind) -> None:
    """Add a chart; the same name again replaces it.

    **Example:**

    >>> from feelgood.report.chart_kinds import ChartKind, Section, all_charts, register_chart
    >>> from feelgood.report.charts.curves import regret_curves
    >>> section = Section("mine", "Mine", "Mean regret.")
    >>> register_chart(ChartKind("mine", section, regret_curves, on_page=lambda problem: []))
    >>> "mine" in [chart.name for chart in all_charts()]
    True
    """
    _REGISTERED[chart.name] = chart


def chart_names() -> list[str]:
    """All charts, by name."""
    files = [module.name.replace("_", "-") for module in pkgutil.iter_modules(charts.__path__)]
    return sorted({*files, *_REGISTERED})


def all_charts() -> list[ChartKind]:
    """All charts, in the order of the page."""
    for module in pkgutil.iter_modules(charts.__path__):
        importlib.import_module(f"{charts.__name__}.{module.name}")
    return sorted(_REGISTERED.values(), key=lambda chart: (chart.section.place, chart.name))


def sections() -> list[Section]:
    """The sections of the page, in their order."""
    return list({chart.section.id: chart.section for chart in all_charts()}.values())


def find_chart(name: str) -> ChartKind:
    """The chart of this name."""
    found = {chart.name: chart for chart in all_charts()}
    if name not in found:
        raise FeelgoodError(f"unknown chart '{name}': {did_you_mean(name, chart_names())}")
    return found[name]
