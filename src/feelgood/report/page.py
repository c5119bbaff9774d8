"""The page: one HTML file with everything inside, for a reader without our code or a network.

Python aggregates and packs; page.js draws. Names from files travel as JSON and are put into the
page as text, never as markup.
"""

import dataclasses
import datetime
import functools
import html
import json
import math
import re
from collections.abc import Mapping, Sequence
from importlib import resources
from importlib.metadata import version
from typing import Any

from altair.utils.schemapi import debug_mode

from feelgood.errors import FeelgoodError
from feelgood.metrics import Summary
from feelgood.posterior import AgentPosterior, Analysis, Row
from feelgood.report import along_charts, charts, drawing, posterior_charts
from feelgood.report.drawing import Chart, Style, figures
from feelgood.report.series import Series, find_sweeps, name_series, ordered_labels, show_value
from feelgood.report.tables import LEVEL, Comparison, Verdict, about_networks, counts
from feelgood.results import AgentResult
from feelgood.statistics import common_seeds, compute_of, rank, values_at

#: Series that are drawn at first; with a few more all of them are.
FIRST, FEW = 8, 10
#: Points of all curves together: bounds the page's size.
POINT_BUDGET = 16_000
FEWEST_POINTS = 30


@dataclasses.dataclass(frozen=True)
class Section:
    """A part of the page with charts, and the buttons that choose between their variants."""

    id: str
    title: str
    about: str
    controls: tuple[Mapping[str, Any], ...] = ()


SECTIONS = (
    Section(
        "curves",
        "Regret along the run",
        "Mean cumulative regret over seeds; bands hold 10 to 90 % of the seeds. Every agent meets "
        "the same contexts and the same noise. Lower is better.",
        (
            {"name": "x", "label": "Log rounds"},
            {"name": "y", "label": "Log regret"},
        ),
    ),
    Section(
        "final",
        "Final regret",
        "Mean over seeds with a 95 % bootstrap interval, and single seeds behind it.",
        ({"name": "x", "label": "Log regret"},),
    ),
    Section(
        "sweeps",
        "Settings that were swept",
        "Mean final regret, everything else being equal. The lowest of a map is framed.",
    ),
    Section(
        "published",
        "Ours beside the published",
        f"Mean ± std. Verdicts: Welch's two-sided test of equal means, level {LEVEL:g} a row. What "
        "cannot be compared is drawn faintly, with its reason in the table.",
    ),
    Section(
        "health",
        "Sampler health",
        "How the samplers did: means over seeds along the run, and how many independent draws 200 "
        "repeated ones are worth at its end. Agents without a sampler have no line.",
        (
            {
                "name": "measure",
                "label": "Measure",
                "options": [
                    {"key": key, "label": label[0].upper() + label[1:]}
                    for key, label in charts.MEASURES.items()
                ],
            },
        ),
    ),
    Section(
        "posterior",
        "Posterior error and regret",
        "How far the agents' draws are from their exact posteriors, measured along the run: means "
        "over seeds with bands of 10 to 90 % of them, and dashed what as many exact draws would "
        "show. Beside it the mean final regret against the error along the run; dots have 95 % "
        "bootstrap intervals.",
        (
            {
                "name": "measure",
                "label": "Measure",
                "options": [
                    {"key": key, "label": along_charts.BUTTONS[key]} for key in along_charts.BUTTONS
                ],
            },
        ),
    ),
    Section(
        "draws",
        "Exact and sampled draws",
        "Every arm's first coordinate across and its second upwards: draws of the exact posterior "
        "and of the agent, with the ellipses that hold 90 % of normal laws with their moments; "
        "dashed that of the agent's own target where it is another law.",
    ),
    Section(
        "compute",
        "Regret against compute",
        "What a chain cost and what it reached: lower left is better. Agents in closed form "
        "evaluate no gradients.",
        (
            {
                "name": "cost",
                "label": "Cost",
                "options": [
                    {"key": "gradients", "label": "Gradient evaluations"},
                    {"key": "seconds", "label": "Seconds"},
                ],
            },
        ),
    ),
)


def build_page(
    results: Sequence[AgentResult],
    title: str = "Results",
    comparisons: Sequence[Comparison] = (),
    analyses: Sequence[Analysis] = (),
    notices: Sequence[str] = (),
) -> str:
    """The whole page as text; `analyses` of posteriors stand beside the testbeds.

    `notices` are sentences that the reader must know first: what was left out.
    """
    if not results and not analyses:
        raise FeelgoodError("there are no results to report: run something first.")
    parts = {
        "title": html.escape(title),
        "notices": "".join(f'<p class="notice">{html.escape(said)}</p>' for said in notices),
        "style": _asset("page.css"),
        "data": to_script_json(page_data(results, comparisons, analyses)),
        "vega": _vega(),
        "script": _asset("page.js"),
    }
    # One pass: what is put in is not looked at again.
    return re.sub("@@([a-z]+)@@", lambda m: parts[m[1]], _asset("page.html"))


def to_script_json(value: Any) -> str:
    """JSON that cannot end the script element it stands in, nor start a comment there."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    # Lone surrogates, which odd file names may hold, have no UTF-8 form.
    return re.sub("[\ud800-\udfff]", lambda m: f"\\u{ord(m[0]):04x}", text)


def _asset(name: str) -> str:
    return resources.files("feelgood.report").joinpath(name).read_text(encoding="utf-8")


@functools.cache
def _vega() -> str:
    """Vega, Vega-Lite and vega-embed as one script, from vl-convert's own copy."""
    import vl_convert

    lite = drawing.vega_lite_version()
    bundle = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=lite)
    return str(bundle).replace("</script", "<\\/script")


# What the script draws from ------------------------------------------------------------------


def page_data(
    results: Sequence[AgentResult],
    comparisons: Sequence[Comparison] = (),
    analyses: Sequence[Analysis] = (),
) -> dict[str, Any]:
    """Everything that page.js needs, as plain JSON."""
    series = name_series(results)
    labels = ordered_labels(series)
    problems = list(dict.fromkeys(s.problem for s in series))
    groups = [[s for s in series if s.problem == problem] for problem in problems]
    points = max(FEWEST_POINTS, min(drawing.POINTS, POINT_BUDGET // max(len(series), 1)))
    style = Style(labels=tuple(labels), width="container", switch=True, points=points)
    beside = [_comparisons_of(group, comparisons) for group in groups]
    packer = _Packer()
    # Altair checks every part of a chart against its schema, which takes most of the time here;
    # the tests do it for all charts.
    with debug_mode(False):
        for number, (group, rows) in enumerate(zip(groups, beside, strict=True)):
            _add_charts(packer, number, group, rows, style)
        for number, analysis in enumerate(analyses, len(groups)):
            _add_analysis(packer, number, analysis)
    none: list[list[Any]] = [[] for _ in analyses]
    return {
        "lede": _lede(results, problems, analyses),
        "end": f"Made with feelgood {version('feelgood')} on "
        f"{datetime.datetime.now(datetime.UTC):%d %B %Y, %H:%M} UTC. "
        "This file is complete: it loads nothing from elsewhere.",
        "overview": _overview(groups, comparisons, analyses),
        "numbers_about": "Over seeds, chains that diverged left out. Gradients and seconds are "
        "those of one chain. The specification behind a row has its settings and provenance.",
        "sections": [dataclasses.asdict(section) for section in SECTIONS],
        "problems": [
            *(_problem(problems[i], group, labels) for i, group in enumerate(groups)),
            *map(_analysed, analyses),
        ],
        "labels": labels,
        "few": FEW,
        "signal": drawing.SHOWN,
        "palettes": drawing.PALETTES,
        "dashes": drawing.DASHES,
        "themes": {
            name: drawing.theme_config(name) | {"background": None} for name in ("light", "dark")
        },
        "charts": packer.charts,
        "datasets": packer.datasets,
        "tables": packer.tables,
        "results": [
            *([_result_row(s) for s in sorted(g, key=drawing.by_mean)] for g in groups),
            *none,
        ],
        "published": [*([_published_row(c) for c in rows] for rows in beside), *none],
    }


class _Packer:
    """Charts of the page; their data apart, each table once and by columns."""

    def __init__(self) -> None:
        self.charts: list[dict[str, Any]] = []
        self.datasets: dict[str, Any] = {}
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
            spec = drawing.to_spec(chart)
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


def _add_charts(
    packer: _Packer,
    number: int,
    group: Sequence[Series],
    beside: Sequence[Comparison],
    style: Style,
) -> None:
    problem = group[0].problem
    curves = {
        key: charts.curves_panel(group, style, log_x="x" in key, log_y="y" in key)
        for key in ("", "x", "y", "x+y")
    }
    packer.add("curves", number, f"Regret along the run on {problem}", curves)
    final = {key: charts.final_panel(group, style, log_x=key == "x") for key in ("", "x")}
    packer.add("final", number, f"Final regret on {problem}", final)
    sweeps = find_sweeps(group)
    for sweep in sweeps:
        if len(sweep.axes) == 2:
            name = f"{sweep.name}: {sweep.axes[0]} and {sweep.axes[1]}"
            packer.add("sweeps", number, name, {"": charts.heat_map(sweep, "container")}, name)
    for lines in charts.group_lines(sweeps):
        name = f"over {lines[0].axes[0]}"
        packer.add("sweeps", number, name, {"": charts.sweep_lines(lines, "container")}, name)
    if beside:
        chart = charts.beside_published(beside, "container")
        packer.add("published", number, f"Ours beside the published on {problem}", {"": chart})
    measures = {
        name: charts.health_panel(group, style, name) for name in charts.health_measures(group)
    }
    if measures:
        packer.add("health", number, f"Sampler health on {problem}", measures)
    if along_charts.measured(group):
        _add_posterior(packer, number, group, style)
    costs: dict[str, Chart] = {
        cost: charts.compute_panel(group, style, cost)
        for cost in charts.COSTS
        if any(charts.cost_rows(s, cost) for s in group)
    }
    if costs:
        packer.add("compute", number, f"Regret against compute on {problem}", costs)


def _add_posterior(packer: _Packer, number: int, group: Sequence[Series], style: Style) -> None:
    problem, buttons = group[0].problem, along_charts.BUTTONS
    along = {name: along_charts.along_panel(group, style, name) for name in buttons}
    packer.add("posterior", number, f"Posterior error on {problem}", along, "Along the run")
    against = {name: along_charts.against_panel(group, style, name) for name in buttons}
    found = {name: along_charts.correlation(group, name) for name in buttons}
    first = next(iter(found.values()))
    caption = "Regret against the error" + ("" if first.enough else f": {first.sentence}")
    title = f"Regret against posterior error on {problem}"
    packer.add("posterior", number, title, against, caption)
    if first.enough:
        interval = f"{100 * first.level:g} % interval"
        packer.add_table(
            "posterior",
            number,
            f"Rank correlation of posterior error and final regret over {first.agents} agents; "
            "bootstrap intervals over agents and seeds",
            ("error of", f"Spearman, {interval}", f"Kendall, {interval}"),
            [(buttons[name], c.spearman_text, c.kendall_text) for name, c in found.items()],
        )


#: Columns of an analysis' table: the measures, what is above them, and their digits.
ANALYSED = {
    "bias": ("bias (sd)", 3),
    "trace": ("variance", 3),
    "cover90": ("in 90 %", 3),
    "choice": ("arm choice", 4),
    "ess": ("ESS", 0),
    "rhat": ("R̂", 3),
}


def _add_analysis(packer: _Packer, number: int, analysis: Analysis) -> None:
    """The paper's figure and the numbers behind it."""
    name = _analysis_name(analysis)
    figure = posterior_charts.posterior_figure(analysis.agents, switch=True)
    packer.add("draws", number, f"Exact and sampled draws, {name}", {"": figure})
    rows = []
    for a in analysis.agents:
        for against, comparison in a.comparisons.items():
            found = {r.measure: r for r in comparison.rows if r.arm is None}
            cells = [_measured(found.get(m), digits) for m, (_, digits) in ANALYSED.items()]
            rows.append((a.agent, str(a.seed), against, *cells, comparison.verdict.status))
    packer.add_table(
        "draws",
        number,
        "All arms together, ± Monte Carlo error; of distances, in brackets, what exact draws show",
        ("agent", "seed", "against", *(title for title, _ in ANALYSED.values()), "verdict"),
        rows,
    )


def _measured(row: Row | None, digits: int) -> str:
    if row is None:
        return "–"
    if not math.isfinite(row.error):
        return f"{row.value:,.{digits}f}"
    if row.measure in along_charts.DISTANCES:
        return f"{row.value:.{digits}f} ({row.expected:.{digits}f} ± {row.error:.{digits}f})"
    return f"{row.value:.{digits}f} ± {row.error:.{digits}f}"


def _analysis_name(analysis: Analysis) -> str:
    data = "one run for all" if analysis.mode == "same" else "own runs"
    return f"posteriors on {analysis.testbed}, {analysis.rounds:,} rounds, {data}"


def _analysed(analysis: Analysis) -> dict[str, Any]:
    """An analysis as an entry beside the testbeds."""
    agents = list(dict.fromkeys(a.agent for a in analysis.agents))
    return {"name": _analysis_name(analysis), "labels": agents, "initially": agents}


def _comparisons_of(group: Sequence[Series], comparisons: Sequence[Comparison]) -> list[Comparison]:
    """The comparisons that belong to a problem: the same testbed, agents and rounds."""
    known = {(s.result.testbed, s.result.agent, s.result.rounds) for s in group}
    return [
        c
        for c in comparisons
        if c.ours is not None and (c.row.testbed, c.row.agent, c.rounds) in known
    ]


def _problem(name: str, group: Sequence[Series], labels: Sequence[str]) -> dict[str, Any]:
    here = {s.label for s in group}
    ordered = [s.label for s in sorted(group, key=drawing.by_mean)]
    first = set(ordered if len(ordered) <= FEW else ordered[:FIRST])
    return {
        "name": name,
        "labels": [label for label in labels if label in here],
        "initially": [label for label in labels if label in first],
    }


def _plural(count: int, word: str) -> str:
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"


def _lede(
    results: Sequence[AgentResult], problems: Sequence[str], analyses: Sequence[Analysis]
) -> str:
    parts = []
    if results:
        parts += [
            _plural(len({r.agent for r in results}), "agent"),
            _plural(len(problems), "testbed"),
            _plural(len(results), "setting"),
            _plural(sum(len(r.seeds) for r in results), "chain"),
        ]
    if analyses:
        count = sum(len({a.agent for a in analysis.agents}) for analysis in analyses)
        parts.append("posteriors of " + _plural(count, "agent"))
    return ", ".join(parts)


def _range(values: Sequence[int]) -> str:
    low, high = min(values), max(values)
    return f"{low:,}" if low == high else f"{low:,} – {high:,}"


def _facts(results: Sequence[AgentResult], testbeds: int) -> list[tuple[str, str]]:
    diverged = sum(int((r.diverged_at >= 0).sum()) for r in results)
    return [
        ("agents", f"{len({r.agent for r in results})}"),
        ("testbeds", f"{testbeds}"),
        ("seeds", _range([len(r.seeds) for r in results])),
        ("rounds", _range([r.rounds for r in results])),
        ("chains", f"{sum(len(r.seeds) for r in results):,}"),
        ("diverged chains", f"{diverged:,}"),
    ]


def _analysis_facts(analyses: Sequence[Analysis]) -> list[tuple[str, str]]:
    draws = sum(a.draws.shape[0] * a.draws.shape[1] for one in analyses for a in one.agents)
    return [
        ("agents", f"{len({a.agent for one in analyses for a in one.agents})}"),
        ("rounds", _range([one.rounds for one in analyses])),
        ("draws", f"{draws:,}"),
    ]


def _overview(
    groups: Sequence[Sequence[Series]],
    comparisons: Sequence[Comparison],
    analyses: Sequence[Analysis],
) -> dict[str, Any]:
    series = [s for group in groups for s in group]
    results = [s.result for s in series]
    done = [c for c in comparisons if c.verdict is not Verdict.NOT_RUN]
    facts = _facts(results, len(groups)) if results else _analysis_facts(analyses)
    verdicts = [(group[0].problem, _verdict(group)) for group in groups]
    if done:
        verdicts.append(
            ("the paper", f"{counts(done)} (published numbers beside ours).{about_networks(done)}")
        )
    verdicts += [
        (f"draws of {a.agent}", f"{a.verdict.sentence} ({_law(a)}, seed {a.seed})")
        for one in analyses
        for a in one.agents
    ]
    warnings = [
        f"{s.label} on {s.problem}: {s.result.status}" for s in series if s.result.status != "ok"
    ]
    most = 12
    if len(warnings) > most:
        warnings = [*warnings[:most], f"and {len(warnings) - most} more: see the tables."]
    return {
        "about": "Who has the lowest regret, and how sure that is: paired tests over common seeds, "
        "corrected for the number of agents."
        if results
        else "Whether the agents' draws are what they should be, within Monte Carlo error.",
        "facts": facts,
        "warnings": warnings,
        "verdicts": verdicts,
    }


def _law(a: AgentPosterior) -> str:
    return "against its own target" if "target" in a.comparisons else "against the posterior"


def _verdict(group: Sequence[Series]) -> str:
    """The ranking of one problem in a sentence."""
    best = min(group, key=drawing.by_mean)
    if len(group) == 1:
        return f"only {best.label} was run."
    try:
        seeds = common_seeds([s.result for s in group])
        ranking = rank({s.label: values_at(s.result, seeds) for s in group})
    except FeelgoodError as error:
        return f"no ranking: {error}"
    if ranking.winner is not None:
        return ranking.verdict
    left = [s.name for s in ranking.standings if s.may_be_best]
    # Labels hold commas.
    shown = "; ".join(left[:6]) + (f" and {len(left) - 6} more" if len(left) > 6 else "")
    return (
        f"no winner: {shown or 'none of them'} may be the best "
        f"(level {ranking.level:g}, {ranking.seeds} seeds)."
    )


# Tables --------------------------------------------------------------------------------------


def _finite(value: float | None) -> float | None:
    return None if value is None else figures(value, 6)


def _result_row(series: Series) -> dict[str, Any]:
    r = series.result
    regret, estimate, cost = r.regret, drawing.regret_interval(r), compute_of(r)
    return {
        "label": series.label,
        "mean": _finite(regret.mean),
        "std": _finite(regret.std),
        "low": _finite(estimate.low),
        "high": _finite(estimate.high),
        "median": _finite(regret.median),
        "simple": _finite(r.simple.mean),
        "best_arm": _finite(Summary.of(r.best_arm_rate).mean),
        "chains": len(r.seeds),
        "diverged": int((r.diverged_at >= 0).sum()),
        "gradients": _finite(cost.gradients),
        "seconds": _finite(cost.seconds),
        "run": [
            ("agent", r.agent),
            ("testbed", r.testbed),
            ("rounds", f"{r.rounds:,}"),
            ("seeds", _seed_ranges(r.seeds)),
            ("status", r.status),
            ("compile seconds", f"{r.compile_s:.2f}"),
            ("run seconds", f"{r.run_s:.2f}"),
        ],
        "settings": _pairs(r.settings),
        "testbed_settings": _pairs(r.testbed_settings),
        "provenance": _pairs(r.provenance),
    }


def _pairs(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    out = []
    for key, value in values.items():
        text = json.dumps(value) if isinstance(value, list | dict) else show_value(value)
        out.append((str(key), text if len(text) <= 400 else text[:399] + "…"))
    return out


def _seed_ranges(seeds: Sequence[int]) -> str:
    """`0–99`, or the pieces where there are gaps."""
    pieces: list[list[int]] = []
    for seed in sorted(seeds):
        if pieces and seed == pieces[-1][1] + 1:
            pieces[-1][1] = seed
        else:
            pieces.append([seed, seed])
    shown = [f"{a}" if a == b else f"{a}–{b}" for a, b in pieces]
    return ", ".join(shown[:20]) + (", …" if len(shown) > 20 else "")


def _published_row(c: Comparison) -> dict[str, Any]:
    assert c.ours is not None, "only comparisons with a result of ours are shown"
    theirs = c.row.published
    tested = c.test is not None and c.verdict in (Verdict.AGREES, Verdict.DIFFERS)
    return {
        "table": theirs.table,
        "label": c.label,
        "ours": _finite(c.ours.mean),
        "ours_std": _finite(c.ours.std),
        "ours_seeds": c.ours.count,
        "published": theirs.mean,
        "published_std": _finite(theirs.std),
        "published_seeds": theirs.seeds,
        "difference": _finite(c.ours.mean - theirs.mean),
        "p": _finite(c.test.p) if tested and c.test and math.isfinite(c.test.p) else None,
        "verdict": c.verdict.value,
        "reason": "; ".join(filter(None, [c.reason, c.row.tuned and f"network: {c.row.tuned}"])),
    }
