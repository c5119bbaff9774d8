"""The sections of the page, and the charts in them."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

from feelgood.posterior import Analysis, MeasureRow
from feelgood.report import along_charts, charts, posterior_charts
from feelgood.report.drawing import Chart, Style
from feelgood.report.packing import Packer
from feelgood.report.series import Series, find_sweeps, show_axis
from feelgood.report.tables import LEVEL, Comparison


@dataclasses.dataclass(frozen=True)
class Section:
    """A part of the page with charts, and the buttons that choose between their variants."""

    id: str
    title: str
    about: str
    controls: tuple[Mapping[str, Any], ...] = ()


#: Buttons that set a signal of the charts; the others choose between variants.
ALL_BANDS = {"name": "bands", "label": "All bands", "signal": True}
WHOLE_AXIS = {"name": "whole", "label": "Whole axis", "signal": True}

SECTIONS = (
    Section(
        "curves",
        "Regret along the run",
        "Mean cumulative regret over seeds; lower is better. Every agent meets the same contexts "
        "and the same noise. Point at a curve for its numbers and for the band that holds 10 to "
        "90 % of the seeds; click to keep it.",
        (
            {"name": "x", "label": "Log rounds"},
            {"name": "y", "label": "Log regret"},
            ALL_BANDS,
            WHOLE_AXIS,
        ),
    ),
    Section(
        "final",
        "Final regret",
        "Mean over seeds with a 95 % bootstrap interval, and single seeds behind it.",
        ({"name": "x", "label": "Log regret"}, WHOLE_AXIS),
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
        "over seeds, and dashed what as many exact draws would show; point at a line for the band "
        "that holds 10 to 90 % of the seeds. Beside it the mean final regret against the error "
        "along the run; dots have 95 % bootstrap intervals.",
        (
            {
                "name": "measure",
                "label": "Measure",
                "options": [
                    {"key": key, "label": along_charts.BUTTONS[key]} for key in along_charts.BUTTONS
                ],
            },
            ALL_BANDS,
            WHOLE_AXIS,
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


def add_charts(
    packer: Packer,
    number: int,
    group: Sequence[Series],
    beside: Sequence[tuple[str, Comparison]],
    style: Style,
) -> None:
    """All charts of one problem; `beside` are its comparisons with their names on the page."""
    problem = group[0].problem
    style = dataclasses.replace(style, tables={})
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
            name = f"{sweep.name}: {' and '.join(map(show_axis, sweep.axes))}"
            packer.add("sweeps", number, name, {"": charts.heat_map(sweep, "container")}, name)
    for lines in charts.group_lines(sweeps):
        name = f"over {show_axis(lines[0].axes[0])}"
        packer.add("sweeps", number, name, {"": charts.sweep_lines(lines, "container")}, name)
    if beside:
        names, comparisons = zip(*beside, strict=True)
        chart = charts.beside_published(comparisons, "container", names)
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
    packer.keep(number, style.tables)


def _add_posterior(packer: Packer, number: int, group: Sequence[Series], style: Style) -> None:
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


def add_analysis(packer: Packer, number: int, analysis: Analysis) -> None:
    """The paper's figure and the numbers behind it."""
    name = analysis_name(analysis)
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


def _measured(row: MeasureRow | None, digits: int) -> str:
    if row is None:
        return "–"
    if not math.isfinite(row.error):
        return f"{row.value:,.{digits}f}"
    if row.measure in along_charts.DISTANCES:
        return f"{row.value:.{digits}f} ({row.expected:.{digits}f} ± {row.error:.{digits}f})"
    return f"{row.value:.{digits}f} ± {row.error:.{digits}f}"


def analysis_name(analysis: Analysis) -> str:
    data = "one run for all" if analysis.mode == "same" else "own runs"
    return f"posteriors on {analysis.testbed}, {analysis.rounds:,} rounds, {data}"


def analysed(analysis: Analysis) -> dict[str, Any]:
    """An analysis as an entry beside the testbeds."""
    agents = list(dict.fromkeys(a.agent for a in analysis.agents))
    return {"name": analysis_name(analysis), "labels": agents, "initially": agents}
