"""How a panel is drawn: colours, size, and who switches series; the same everywhere."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, cast

from feelgood.core.errors import FeelgoodError
from feelgood.engine.results import AgentResult
from feelgood.report.aggregates import CURVE_POINTS
from feelgood.report.axes import value_scale
from feelgood.report.charting import alt
from feelgood.report.rendering import Chart, ChartRows, as_table
from feelgood.report.series import Series, name_series, ordered_labels
from feelgood.report.theme import DASHES, PALETTES, SHAPES

#: Signals by which the page changes a panel: the series that are drawn, the highlighted one ("" is
#: none), whether all bands are drawn, and the ends of the value axis.
SHOWN_SERIES, FOCUS, BANDS, BOTTOM, TOP = "shown", "focus", "bands", "bottom", "top"
#: Tables of a panel that the page fills: names at the ends of lines, and where lines leave.
ENDS, EXITS = "ends", "exits"


@dataclasses.dataclass(frozen=True)
class Style:
    """How a panel is drawn: the order of colours, its size, and who switches series.

    With `switch` the page switches series: by signals it sets which are drawn, their colours and
    the ends of the axes. Then there is no legend, and `tables` keeps the rows, each table once.
    Without `switch` a click on the legend of a single panel highlights a series.

    **Example:**

    >>> from feelgood.report.style import Style
    >>> style = Style(labels=("linucb", "uniform"), width=400)
    >>> chart = style.data("points", style.rows("points", lambda: [{"series": "linucb", "x": 1.0}]))
    >>> style.panel(chart.mark_point().encode(color=style.colour())).to_dict()["width"]
    400
    """

    labels: tuple[str, ...]
    width: int | Literal["container"] = 560
    height: int = 340
    switch: bool = False
    points: int = CURVE_POINTS
    #: Which panel of how many this is.
    panel_number: int = 0
    panel_count: int = 1
    tables: dict[str, ChartRows] = dataclasses.field(default_factory=dict, compare=False)

    def colour(self, title: str = "agent", line: bool = True) -> alt.Color:
        return alt.Color("series:N", title=title, scale=self._scale(), legend=self._legend(line))

    def plain_colour(self) -> alt.Color:
        """The series' colour without a legend, where the axis names the series."""
        return alt.Color("series:N", scale=self._scale(), legend=None)

    def dash(self, title: str = "agent") -> alt.StrokeDash:
        scale = self._scale(DASHES, [list(dash) for dash in DASHES])
        return alt.StrokeDash("series:N", title=title, scale=scale, legend=self._legend())

    def shape(self, title: str = "agent") -> alt.Shape:
        scale = self._scale(SHAPES, SHAPES)
        return alt.Shape("series:N", title=title, scale=scale, legend=self._legend(line=False))

    def _scale(self, kinds: Sequence[Any] = (), values: Sequence[Any] = ()) -> Any:
        """The series in their order; once all colours are used, the next of the `kinds`."""
        if self.switch:
            return alt.Undefined
        domain = list(self.labels)
        if not kinds:
            return alt.Scale(domain=domain)
        colours = len(PALETTES["light"])
        places = range(max(len(self.labels), 1))
        return alt.Scale(domain=domain, range=[values[i // colours % len(kinds)] for i in places])

    def _legend(self, line: bool = True) -> alt.Legend | None:
        if self.switch:
            return None
        if not line:
            return alt.Legend(symbolLimit=0, labelLimit=260, symbolOpacity=1)
        return alt.Legend(
            symbolLimit=0,
            labelLimit=260,
            symbolOpacity=1,
            symbolType="stroke",
            symbolSize=400,
            symbolStrokeWidth=2.5,
        )

    def rows(self, name: str, make: Callable[[], ChartRows]) -> ChartRows:
        """The rows of a table, made once for all variants of a panel."""
        if not self.switch:
            return make()
        if name not in self.tables:
            self.tables[name] = make()
        return self.tables[name]

    def data(self, name: str, rows: ChartRows) -> alt.Chart:
        """A chart on these rows of which only those of the shown series are drawn."""
        if not self.switch:
            return alt.Chart(as_table(rows))
        chart = alt.Chart(alt.NamedData(name=name))
        return chart.transform_filter(f"indexof({SHOWN_SERIES}, datum.series) >= 0")

    def values(self, log: bool = False, zero: bool = True, nice: bool = True) -> alt.Scale:
        """The scale of values; on the page its ends keep one bad agent from flattening the rest."""
        if not self.switch:
            return value_scale(log, zero=zero, nice=nice)
        ends = [alt.ExprRef(BOTTOM), alt.ExprRef(TOP)]
        if log:
            return alt.Scale(type="log", domain=ends, nice=False)
        return alt.Scale(domain=ends, nice=False, zero=False)

    def brought_out(self, full: float = 1.0) -> Any:
        """Opacity: on the page, all series but the highlighted one fade."""
        if not self.switch:
            return alt.OpacityValue(full)
        return faded(f"{FOCUS} != '' && {FOCUS} != datum.series", full)

    def bands(self, base: alt.Chart) -> alt.Chart:
        """On the page only the band of the highlighted series, unless all are asked for."""
        if not self.switch:
            return base
        return base.transform_filter(f"{BANDS} || datum.series == {FOCUS}")

    def inside(self, base: alt.Chart, field: str) -> alt.Chart:
        """On the page without the points that lie outside of the picture."""
        return base.transform_filter(f"datum.{field} <= {TOP}") if self.switch else base

    def line_ends(self, x: str) -> list[alt.Chart]:
        """On the page: names at the ends of lines, and a mark where a line leaves the picture."""
        if not self.switch:
            return []
        place: Any = alt.Chart(alt.NamedData(name=ENDS))
        names = place.mark_text(align="left", dx=6, fontSize=11.5, limit=LONGEST_NAME).encode(
            x=alt.XValue(alt.ExprRef("width")),
            y=alt.Y("at:Q", scale=None, title=None),
            text="text:N",
            color=self.plain_colour(),
            opacity=faded(f"{FOCUS} != '' && indexof(datum.same, {FOCUS}) < 0"),
        )
        exits = (
            alt.Chart(alt.NamedData(name=EXITS))
            .mark_point(filled=True, size=70, shape="triangle-up", opacity=1, yOffset=5)
            .encode(
                x=alt.X(f"{x}:Q"),
                y=alt.YValue(0),
                color=self.plain_colour(),
                tooltip=[
                    alt.Tooltip("series:N", title="agent"),
                    alt.Tooltip("text:N", title="leaves the picture"),
                ],
            )
        )
        return [names, exits]

    def panel(
        self,
        *layers: alt.Chart,
        height: int | alt.Step | None = None,
        values: Mapping[str, Any] | None = None,
    ) -> alt.LayerChart:
        """The layers as one panel of this size.

        `values` tells the page how to set the ends of the axis of values. It has the fields of a
        row that hold the `value` and its `low` and `high`, and the field `along` the lines, where
        there are lines. It says whether the axis is `log` or begins at `zero`.
        """
        panel = layered(layers, self.width, height or self.height)
        if self.switch:
            start = {SHOWN_SERIES: list[str](), FOCUS: "", BANDS: False, BOTTOM: 0.0, TOP: 1.0}
            names = start if values else (SHOWN_SERIES, FOCUS)
            params = [alt.param(name=name, value=start[name]) for name in names]
            panel = panel.add_params(*params)
            if values:
                panel = panel.properties(usermeta={"values": dict(values)})
        return panel


#: Pixels of a name at the end of a line.
LONGEST_NAME = 170


def faded(test: str, full: float = 1.0) -> alt.OpacityValue:
    """Opacity that is lower where the expression is true."""
    # With `alt.when` Altair looks through all of its classes, 20 ms each time.
    return alt.OpacityValue(
        full, condition=alt.ConditionalPredicateValueDefnumberExprRef(test=test, value=full / 5)
    )


def panels(
    results: Sequence[AgentResult],
    draw: Callable[[Sequence[Series], Style], alt.LayerChart],
    title: Callable[[Sequence[Series]], str | list[str]] = lambda series: series[0].problem,
) -> Chart:
    """One panel per problem, with common colours.

    **Example:**

    >>> import feelgood
    >>> from feelgood.report.charts.curves import curves_panel
    >>> from feelgood.report.style import panels
    >>> result = feelgood.run("linear-20", "uniform", rounds=20, seeds=2)
    >>> panels(result.results, lambda series, style: curves_panel(series, style)).to_dict()["title"]
    'linear-20'
    """
    if not results:
        raise FeelgoodError("there are no results to draw: give at least one.")
    series = name_series(results)
    problems = list(dict.fromkeys(s.problem for s in series))
    style = Style(labels=tuple(ordered_labels(series)))
    drawn = []
    for number, problem in enumerate(problems):
        own = [s for s in series if s.problem == problem]
        place = dataclasses.replace(style, panel_number=number, panel_count=len(problems))
        drawn.append(draw(own, place).properties(title=title(own)))
    return side_by_side(drawn)


def side_by_side(panels: Sequence[alt.LayerChart]) -> Chart:
    """In two columns; one alone as it is."""
    return panels[0] if len(panels) == 1 else alt.concat(*panels, columns=2)


def layered(
    layers: Sequence[alt.Chart], width: int | Literal["container"], height: int | alt.Step
) -> alt.LayerChart:
    """Layers as one chart of this size."""
    return cast(alt.LayerChart, alt.layer(*layers)).properties(width=width, height=height)


def highlight(style: Style) -> tuple[alt.Parameter | None, Any]:
    """A click on the legend highlights series; the page has its own buttons.

    Vega-Lite cannot bind one legend to the panels of several testbeds: there it stays passive.
    """
    if style.switch or style.panel_count > 1:
        return None, style.brought_out()
    pick = alt.selection_point(fields=["series"], bind="legend")
    return pick, alt.when(pick).then(alt.value(1)).otherwise(alt.value(0.12))
