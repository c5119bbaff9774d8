"""The page: one HTML file with everything inside, for a reader without our code or a network.

Python aggregates and packs; the scripts in `assets` draw. Names from files travel as JSON and are
put into the page as text, never as markup.
"""

import dataclasses
import datetime
import functools
import html
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib import resources
from importlib.metadata import version
from typing import Any

from feelgood.core.errors import FeelgoodError
from feelgood.engine.results import AgentResult, run_key
from feelgood.posterior import Analysis
from feelgood.report import aggregates, rendering, theme
from feelgood.report.chart_kinds import PageProblem, Section, all_charts, sections
from feelgood.report.charting import debug_mode
from feelgood.report.charts.draws import analysis_name
from feelgood.report.matching import papers_betas, papers_number
from feelgood.report.overview import lede, overview
from feelgood.report.packing import Packer
from feelgood.report.page_rows import published_row, result_row
from feelgood.report.published_comparisons import PublishedComparison
from feelgood.report.series import Series, by_mean, name_series, one_curve, ordered_labels
from feelgood.report.style import Style

#: Series that are drawn at first; with a few more all of them are.
FIRST, FEW = 8, 10
#: Points of all curves together: bounds the page's size.
POINT_BUDGET = 16_000
FEWEST_POINTS = 30
#: Testbeds that the title names.
NAMED = 4
#: Parts of the page's script, in their order.
SCRIPTS = ("base.js", "axes.js", "charts.js", "agents.js", "tables.js", "frame.js")


def build_page(
    results: Sequence[AgentResult],
    title: str = "Results",
    comparisons: Sequence[PublishedComparison] = (),
    analyses: Sequence[Analysis] = (),
    notices: Sequence[str] = (),
) -> str:
    """The whole page as text; `analyses` of posteriors stand beside the testbeds.

    `notices` are sentences at its top, such as what had to be left out of a store.

    **Example:**

    >>> import feelgood
    >>> from feelgood.report.page import build_page
    >>> result = feelgood.run("linear-20", "uniform", rounds=50, seeds=2)
    >>> text = build_page(result.results, title="Mine")
    >>> text.lower().startswith("<!doctype html>"), "Mine" in text
    (True, True)
    """
    if not results and not analyses:
        raise FeelgoodError("there are no results to report: run something first.")
    data = page_data(results, comparisons, analyses)
    parts = {
        "title": html.escape(_title(title, results, analyses)),
        "notices": _notices(notices),
        "style": _asset("page.css"),
        "data": to_script_json(data),
        "vega": _vega(),
        "script": "".join(map(_asset, SCRIPTS)),
    }
    # One pass: what is put in is not looked at again.
    return re.sub("@@([a-z]+)@@", lambda m: parts[m[1]], _asset("page.html"))


def _title(title: str, results: Sequence[AgentResult], analyses: Sequence[Analysis]) -> str:
    """The title with the testbeds that the page shows, unless it names them itself."""
    names = dict.fromkeys([*(r.testbed for r in results), *(a.testbed for a in analyses)])
    if all(name in title for name in names):
        return title
    shown = list(names)[:NAMED] if len(names) > NAMED + 1 else list(names)
    more = f" and {len(names) - len(shown)} more" if len(shown) < len(names) else ""
    return f"{title}: {', '.join(shown)}{more}"


def _notices(notices: Sequence[str]) -> str:
    if not notices:
        return ""
    items = "".join(f"<li>{html.escape(text)}</li>" for text in notices)
    return f'<div class="notice left-out" role="note"><ul>{items}</ul></div>'


def to_script_json(value: Any) -> str:
    """JSON that cannot end the script element it stands in, nor start a comment there."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    # Lone surrogates, which odd file names may hold, have no UTF-8 form.
    return re.sub("[\ud800-\udfff]", lambda m: f"\\u{ord(m[0]):04x}", text)


def _asset(name: str) -> str:
    return resources.files("feelgood.report").joinpath("assets", name).read_text(encoding="utf-8")


@functools.cache
def _vega() -> str:
    """Vega, Vega-Lite and vega-embed as one script, from vl-convert's own copy."""
    import vl_convert

    lite = rendering.vega_lite_version()
    bundle = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=lite)
    return str(bundle).replace("</script", "<\\/script")


# What the script draws from ------------------------------------------------------------------


def page_data(
    results: Sequence[AgentResult],
    comparisons: Sequence[PublishedComparison] = (),
    analyses: Sequence[Analysis] = (),
) -> dict[str, Any]:
    """Everything that the scripts need, as plain JSON."""
    series = _named(results, comparisons)
    labels = ordered_labels(series)
    groups = list(_by_problem(series).values())
    points = max(FEWEST_POINTS, min(aggregates.CURVE_POINTS, POINT_BUDGET // max(len(series), 1)))
    style = Style(labels=tuple(labels), width="container", switch=True, points=points)
    beside = [_beside(group, comparisons) for group in groups]
    packer = Packer()
    # Altair checks every part of a chart against its schema, which takes most of the time here;
    # the tests do it for all charts.
    with debug_mode(False):
        for number, (group, rows) in enumerate(zip(groups, beside, strict=True)):
            own = dataclasses.replace(style, tables={})
            _add_charts(packer, number, "results", PageProblem(group, rows, own))
            packer.keep(number, own.tables)
        for number, analysis in enumerate(analyses, len(groups)):
            _add_charts(packer, number, "analysis", analysis)
    none: list[list[Any]] = [[] for _ in analyses]
    places = {label: i for i, label in enumerate(labels)}
    return {
        "lede": lede(results, len(groups), analyses),
        "end": f"Made with feelgood {version('feelgood')} on "
        f"{datetime.datetime.now(datetime.UTC):%d %B %Y, %H:%M} UTC. "
        "This file is complete: it loads nothing from elsewhere.",
        "overview": overview(groups, comparisons, analyses),
        "numbers_about": "Numbers over seeds, without chains that diverged. Gradients and seconds "
        "are those of one chain. The specification behind a row has its settings and provenance.",
        "sections": [_section(section) for section in sections()],
        "problems": [*(_problem(group, places) for group in groups), *map(_analysed, analyses)],
        "labels": labels,
        "few": FEW,
        "palettes": theme.PALETTES,
        "dashes": theme.DASHES,
        "shapes": theme.SHAPES,
        "themes": {
            name: theme.theme_config(name) | {"background": None} for name in ("light", "dark")
        },
        "papers": {name: ink["paper"] for name, ink in theme.INKS.items()},
        "charts": packer.charts,
        "datasets": packer.datasets,
        "shared": packer.shared,
        "tables": packer.tables,
        "results": [*([result_row(s) for s in sorted(g, key=by_mean)] for g in groups), *none],
        "published": [*([published_row(*row) for row in rows] for rows in beside), *none],
    }


def _add_charts(packer: Packer, number: int, reads: str, shown: PageProblem | Analysis) -> None:
    """All charts of one problem, or of one analysis, in the order of the page."""
    for chart in all_charts():
        if chart.reads == reads:
            for part in chart.on_page(shown):
                packer.add(chart.section.id, number, part)


def _section(section: Section) -> dict[str, Any]:
    """A section as the scripts read it; sections are in their order already."""
    return {name: value for name, value in dataclasses.asdict(section).items() if name != "place"}


def _analysed(analysis: Analysis) -> dict[str, Any]:
    """An analysis as an entry beside the testbeds."""
    agents = list(dict.fromkeys(a.agent for a in analysis.agents))
    return {"name": analysis_name(analysis), "labels": agents, "initially": agents}


def _named(
    results: Sequence[AgentResult], comparisons: Sequence[PublishedComparison]
) -> list[Series]:
    """Every result with its name, which is the same in all sections.

    Runs of the paper have its β, and in brackets the hidden layers of their network.
    """
    layers = {run_key(c.run): c.layers for c in comparisons if c.run is not None and c.layers}
    series = name_series(results, papers_betas(results, comparisons) if comparisons else ())
    if not layers:
        return series
    known = [layers.get(run_key(s.result)) for s in series]
    return [
        dataclasses.replace(s, label=f"{s.label} [{network}]") if network else s
        for s, network in zip(series, known, strict=True)
    ]


def _by_problem(series: Sequence[Series]) -> dict[str, list[Series]]:
    groups: dict[str, list[Series]] = {}
    for s in series:
        groups.setdefault(s.problem, []).append(s)
    return groups


def _beside(
    group: Sequence[Series], comparisons: Sequence[PublishedComparison]
) -> list[tuple[str, PublishedComparison]]:
    """The comparisons of a problem's runs, with their names on the page.

    A run that stands beside several published numbers says of which table, and at which β.
    """
    if not comparisons:
        return []
    labels = {run_key(s.result): s.label for s in group}
    found = [
        (labels[run_key(c.run)], c)
        for c in comparisons
        if c.run is not None and c.ours is not None and run_key(c.run) in labels
    ]
    for detail in (lambda p: p.table, lambda p: f"β={papers_number(p.beta)}", lambda p: p.metric):
        count = Counter(label for label, _ in found)
        found = [
            (label if count[label] == 1 else f"{label} ({detail(c.row.published)})", c)
            for label, c in found
        ]
    return found


def _problem(group: Sequence[Series], places: Mapping[str, int]) -> dict[str, Any]:
    """A testbed: its agents, the best first, those drawn at first, and those of equal curves."""
    best = [s.label for s in sorted(group, key=by_mean)]
    first = best if len(best) <= FEW else best[:FIRST]
    return {
        "name": group[0].problem,
        "labels": sorted(best, key=places.__getitem__),
        "initially": sorted(first, key=places.__getitem__),
        "same": one_curve(group),
    }
