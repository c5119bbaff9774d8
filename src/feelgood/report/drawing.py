"""What all charts share: colours, the style of a panel, axes, aggregates, and files.

One definition of a chart serves the page, notebooks and files: `save` writes PNG, SVG or PDF.
"""

import dataclasses
import functools
import math
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, cast

import altair as alt
import numpy as np
import pyarrow as pa
from jaxtyping import Float

from feelgood.core.errors import FeelgoodError
from feelgood.engine.results import AgentResult
from feelgood.report.series import Series, name_series, ordered_labels
from feelgood.stats.intervals import Estimate, bootstrap

Rows = list[dict[str, Any]]
Chart = alt.LayerChart | alt.Chart | alt.ConcatChart | alt.FacetChart

#: Colours that stay apart for the three common kinds of colour blindness, on white and on black.
#: Past the last one they come again with another dash or shape.
PALETTES = {
    "light": (
        *("#0a4983", "#b12c08", "#21804a", "#d55fa5"),
        *("#0f9ae6", "#bd8805", "#704bd6", "#5f535d"),
    ),
    "dark": (
        *("#6ba1da", "#fa7b46", "#36d18f", "#bb6498"),
        *("#acd4fa", "#f3d344", "#9088f9", "#b8bdc1"),
    ),
}
DASHES: tuple[tuple[int, ...], ...] = ((1, 0), (7, 3), (2, 2), (10, 3, 2, 3), (4, 6))
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross")
#: Text and lines of each theme; the page's style sheet uses the same.
INKS = {
    "light": {"text": "#1d2430", "soft": "#5b6473", "line": "#d9dee6", "paper": "#ffffff"},
    "dark": {"text": "#e8ecf2", "soft": "#a3adbb", "line": "#38414e", "paper": "#161b22"},
}
FONT = "system-ui, 'Helvetica Neue', Arial, 'Liberation Sans', sans-serif"

#: Seeds of a result that are drawn as points, evenly picked from the sorted ones.
DOTS = 40
#: Points of a curve that are kept, and those the pointer can pick.
POINTS, PICKS = 120, 40
LEVEL = 0.95
#: Signals of a panel of the page: the series that are drawn, the one that is brought out ("" is
#: none), whether all bands are drawn, and the ends of the axis of values.
SHOWN, FOCUS, BANDS, BOTTOM, TOP = "shown", "focus", "bands", "bottom", "top"
#: Tables of a panel that the page fills: names at the ends of lines, and where lines leave.
ENDS, EXITS = "ends", "exits"


@dataclasses.dataclass(frozen=True)
class Style:
    """How a panel is drawn: the order of colours, its size, and who switches series.

    With `switch` the page does: through signals it chooses the series, their colours and the ends
    of the axes, and there is no legend; `tables` then keeps the rows, each table once. Else a click
    on the legend of a single panel brings a series out.
    """

    labels: tuple[str, ...]
    width: int | Literal["container"] = 560
    height: int = 340
    switch: bool = False
    points: int = POINTS
    #: Which panel of how many this is.
    panel_number: int = 0
    panel_count: int = 1
    tables: dict[str, Rows] = dataclasses.field(default_factory=dict, compare=False)

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
        """The series in their order; the next of the `kinds` after every round of colours."""
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

    def rows(self, name: str, make: Callable[[], Rows]) -> Rows:
        """The rows of a table, made once for all variants of a panel."""
        if not self.switch:
            return make()
        if name not in self.tables:
            self.tables[name] = make()
        return self.tables[name]

    def data(self, name: str, rows: Rows) -> alt.Chart:
        """A chart on these rows of which only those of the shown series are drawn."""
        if not self.switch:
            return alt.Chart(as_table(rows))
        chart = alt.Chart(alt.NamedData(name=name))
        return chart.transform_filter(f"indexof({SHOWN}, datum.series) >= 0")

    def values(self, log: bool = False, zero: bool = True, nice: bool = True) -> alt.Scale:
        """The scale of values; on the page its ends keep one bad agent from flattening the rest."""
        if not self.switch:
            return value_scale(log, zero=zero, nice=nice)
        ends = [alt.ExprRef(BOTTOM), alt.ExprRef(TOP)]
        if log:
            return alt.Scale(type="log", domain=ends, nice=False)
        return alt.Scale(domain=ends, nice=False, zero=False)

    def brought_out(self, full: float = 1.0) -> Any:
        """Opacity: on the page, the others step back from a series that is brought out."""
        if not self.switch:
            return alt.OpacityValue(full)
        return faded(f"{FOCUS} != '' && {FOCUS} != datum.series", full)

    def bands(self, base: alt.Chart) -> alt.Chart:
        """On the page only the band of a series that is brought out, unless all are asked for."""
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

        `values` tells the page how to set the ends of the axis of values: the fields of a row that
        hold the `value` and its `low` and `high`, whether the axis is `log` or begins at `zero`,
        and the field `along` the lines, where there are lines.
        """
        panel = layered(layers, self.width, height or self.height)
        if self.switch:
            start = {SHOWN: list[str](), FOCUS: "", BANDS: False, BOTTOM: 0.0, TOP: 1.0}
            names = start if values else (SHOWN, FOCUS)
            params = [alt.param(name=name, value=start[name]) for name in names]
            panel = panel.add_params(*params)
            if values:
                panel = panel.properties(usermeta={"values": dict(values)})
        return panel


#: Pixels of a name at the end of a line.
LONGEST_NAME = 170


def faded(test: str, full: float = 1.0) -> alt.OpacityValue:
    """Opacity that steps back where the expression is true."""
    # With `alt.when` Altair looks through all of its classes, 20 ms each time.
    return alt.OpacityValue(
        full, condition=alt.ConditionalPredicateValueDefnumberExprRef(test=test, value=full / 5)
    )


def near_tooltip(fields: Mapping[str, str]) -> Any:
    """A tooltip for points that are picked by being the nearest: titles, and expressions of `d`.

    Vega-Lite puts the tooltip on invisible cells around the points, and looks for words in the cell
    and not in the point that it belongs to ("undefined"). Here every field is the point's.
    """
    told = (f"'{title}': {told}" for title, told in fields.items())
    text = "{" + ", ".join(told) + "}"
    return alt.TooltipValue(alt.ExprRef(re.sub(r"\bd\.", "(datum.datum || datum).", text)))


def theme_config(theme: Literal["light", "dark"] = "light") -> dict[str, Any]:
    """Vega-Lite's `config` for a theme: fonts, quiet axes, the palette."""
    ink = INKS[theme]
    return {
        "background": ink["paper"],
        "font": FONT,
        "view": {"stroke": None},
        "range": {"category": list(PALETTES[theme])},
        "axis": {
            "labelColor": ink["soft"],
            "titleColor": ink["text"],
            "gridColor": ink["line"],
            "domainColor": ink["line"],
            "tickColor": ink["line"],
            "labelFontSize": 12,
            "titleFontSize": 12,
            "titleFontWeight": 500,
            "titlePadding": 10,
            "labelPadding": 6,
        },
        "legend": {
            "labelColor": ink["text"],
            "titleColor": ink["text"],
            "labelFontSize": 12,
            "titleFontSize": 12,
            "titleFontWeight": 500,
        },
        "header": {"labelColor": ink["text"], "titleColor": ink["text"], "labelFontSize": 12},
        "title": {"color": ink["text"], "fontSize": 13, "fontWeight": 600, "anchor": "start"},
    }


FORMATS = ("png", "svg", "pdf")


def render(
    chart: Chart, kind: str, theme: Literal["light", "dark"] = "light", scale: float = 2.0
) -> bytes:
    """The chart as PNG (`scale` pixels a point), SVG or PDF."""
    import vl_convert

    spec = to_spec(chart)
    spec["config"] = theme_config(theme)
    version = vega_lite_version()
    if kind == "svg":
        return vl_convert.vegalite_to_svg(spec, vl_version=version).encode()
    if kind == "pdf":
        return vl_convert.vegalite_to_pdf(spec, vl_version=version)
    if kind == "png":
        return vl_convert.vegalite_to_png(spec, vl_version=version, scale=scale)
    raise FeelgoodError(f"charts cannot be written as '{kind}': use {', '.join(FORMATS)}.")


def vega_lite_version() -> str:
    """The Vega-Lite that Altair writes for, as vl-convert names it."""
    return ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])


def save(chart: Chart, path: Path | str) -> None:
    """Write the chart; the suffix of the file says how."""
    path = Path(path)
    path.write_bytes(render(chart, path.suffix.removeprefix(".").lower()))


def as_table(rows: Rows) -> pa.Table:
    """Rows as a table: Altair checks rows of Python objects one by one, which takes seconds."""
    names = list(rows[0]) if rows else ["series"]
    columns = {}
    for name in names:
        column = pa.array([row[name] for row in rows])
        columns[name] = column.cast(pa.float64()) if pa.types.is_null(column.type) else column
    return pa.table(columns)


def to_spec(chart: Chart, check: bool = True) -> dict[str, Any]:
    """The chart as Vega-Lite, its tables under `datasets`; without Altair's limit on rows.

    `check` compares it with Vega-Lite's schema, which takes much longer than the rest.
    """
    with alt.data_transformers.enable("default", max_rows=None):
        spec: dict[str, Any] = chart.to_dict(validate=check)
    return spec


def regret_interval(result: AgentResult) -> Estimate:
    """Mean final regret with its bootstrap interval; several charts show the same one."""
    return _interval(np.asarray(result.final_regret, np.float64).tobytes())


@functools.lru_cache(maxsize=4096)
def _interval(values: bytes) -> Estimate:
    return bootstrap(np.frombuffer(values), level=LEVEL)


def figures(value: float, digits: int = 5) -> float | None:
    """The value to a few significant digits; None where it is not finite."""
    return float(f"{value:.{digits}g}") if math.isfinite(value) else None


def panels(
    results: Sequence[AgentResult],
    draw: Callable[[Sequence[Series], Style], alt.LayerChart],
    title: Callable[[Sequence[Series]], str | list[str]] = lambda series: series[0].problem,
) -> Chart:
    """One panel a problem, with common colours."""
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
    """A click on the legend brings series out; the page has its own buttons.

    Vega-Lite cannot bind one legend to the panels of several testbeds: there it stays passive.
    """
    if style.switch or style.panel_count > 1:
        return None, style.brought_out()
    pick = alt.selection_point(fields=["series"], bind="legend")
    return pick, alt.when(pick).then(alt.value(1)).otherwise(alt.value(0.12))


def value_scale(log: bool, zero: bool = True, nice: bool = True) -> alt.Scale:
    """Logarithmic, or one that begins at `zero` and ends at a round number (`nice`)."""
    return alt.Scale(type="log", nice=False) if log else alt.Scale(zero=zero, nice=nice)


def number_axis(log_of: Sequence[float | int] = (), form: str = ",~r") -> alt.Axis:
    """A quiet axis; a logarithmic one of these values gets lines at 1, 2 and 5 only."""
    axis = alt.Axis(format=form, labelOverlap="greedy", tickCount=6)
    positive = [v for v in log_of if v > 0]
    if not positive or max(positive) < 10 * min(positive):
        return axis
    low, high = math.floor(math.log10(min(positive))), math.ceil(math.log10(max(positive)))
    steps = (1, 2, 5) if high - low <= 4 else (1,)
    axis.values = [k * 10.0**e for e in range(low, high + 1) for k in steps]
    return axis


def label_axis() -> alt.Axis:
    """An axis of names."""
    return alt.Axis(labelLimit=240, grid=False, ticks=False, domain=False)


def wide(values: Sequence[float]) -> bool:
    """Whether a logarithmic scale shows these better."""
    return len(values) > 0 and min(values) > 0 and max(values) > 5 * min(values)


def thin(count: int, most: int) -> np.ndarray:
    """At most `most` of the indices 0 … count − 1, evenly, the first and the last among them."""
    return np.unique(np.rint(np.linspace(0, count - 1, min(count, most))).astype(np.int64))


def std_of(values: Float[np.ndarray, " seeds"]) -> float:
    """Standard deviation over the living chains; 0 where there are fewer than two."""
    finite = values[np.isfinite(values)]
    return float(np.std(finite, ddof=1)) if len(finite) > 1 else 0.0


def column_means(values: Float[np.ndarray, "seeds points"]) -> Float[np.ndarray, " points"]:
    """Means over the living chains; NaN where none is left."""
    alive = np.isfinite(values)
    count = alive.sum(axis=0)
    return np.where(
        count > 0, np.where(alive, values, 0.0).sum(axis=0) / np.maximum(count, 1), np.nan
    )


def column_quantiles(
    values: Float[np.ndarray, "seeds points"], levels: Sequence[float]
) -> Float[np.ndarray, "levels points"]:
    """Quantiles over the living chains; NaN where none is left."""
    if np.isfinite(values).all():
        return np.quantile(values, levels, axis=0)
    finite = [column[np.isfinite(column)] for column in values.T]
    nothing = np.full(len(levels), np.nan)
    return np.stack([np.quantile(c, levels) if len(c) else nothing for c in finite], axis=1)
