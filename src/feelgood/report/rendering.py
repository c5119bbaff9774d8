"""Charts as Vega-Lite, and as files: PNG, SVG, PDF or HTML."""

from pathlib import Path
from typing import Any, Literal

from feelgood.core.arrow import pa
from feelgood.core.errors import FeelgoodError
from feelgood.report.charting import alt
from feelgood.report.theme import theme_config

#: The rows of a chart's table.
ChartRows = list[dict[str, Any]]
Chart = alt.LayerChart | alt.Chart | alt.ConcatChart | alt.FacetChart

IMAGE_FORMATS = ("png", "svg", "pdf")
#: Formats of a figure that stands alone.
FIGURE_FORMATS = (*IMAGE_FORMATS, "html")


def render(
    chart: Chart, kind: str, theme: Literal["light", "dark"] = "light", scale: float = 2.0
) -> bytes:
    """The chart as PNG (`scale` pixels per point), SVG or PDF."""
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
    raise FeelgoodError(f"charts cannot be written as '{kind}': use {', '.join(IMAGE_FORMATS)}.")


def vega_lite_version() -> str:
    """The Vega-Lite that Altair writes for, as vl-convert names it."""
    return ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])


def save_chart(chart: Chart, path: Path | str) -> None:
    """Write the chart; the suffix of the file says how.

    **Example:**

    >>> import feelgood, pathlib, tempfile
    >>> from feelgood.report.rendering import save_chart
    >>> result = feelgood.run("linear-20", "uniform", rounds=50, seeds=2)
    >>> file = pathlib.Path(tempfile.mkdtemp(), "regret.svg")
    >>> save_chart(result.plot(), file)
    >>> file.read_text().startswith("<svg")
    True
    """
    path = Path(path)
    path.write_bytes(render(chart, path.suffix.removeprefix(".").lower()))


def as_table(rows: ChartRows) -> pa.Table:
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

    **Example:**

    >>> import feelgood
    >>> from feelgood.report.rendering import to_spec
    >>> result = feelgood.run("linear-20", "uniform", rounds=50, seeds=2)
    >>> sorted(to_spec(result.plot()))[:3]
    ['$schema', 'config', 'data']
    """
    with alt.data_transformers.enable("default", max_rows=None):
        spec: dict[str, Any] = chart.to_dict(validate=check)
    return spec


def render_figure(chart: Chart, path: Path) -> bytes:
    """The figure as the suffix of `path` says: PNG, SVG, PDF or one HTML page."""
    kind = path.suffix.removeprefix(".").lower()
    if kind == "html":
        import vl_convert

        spec = {**to_spec(chart), "config": theme_config()}
        page: str = vl_convert.vegalite_to_html(spec, vl_version=vega_lite_version(), bundle=True)
        return page.encode()
    check_format(path)
    return render(chart, kind)


def check_format(path: Path) -> None:
    """Refuse a file whose suffix names no format."""
    if path.suffix.removeprefix(".").lower() not in FIGURE_FORMATS:
        raise FeelgoodError(
            f"figures cannot be written as '{path.name}': end the name in one of "
            f"{', '.join('.' + kind for kind in FIGURE_FORMATS)}."
        )
