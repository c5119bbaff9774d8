"""Final regret over the settings that were swept: heat maps over two, lines over one."""

import math
from collections.abc import Sequence
from typing import Any, Literal

from feelgood.core.errors import FeelgoodError
from feelgood.core.numbers import rounded, setting_text, tile_number
from feelgood.engine.results import AgentResult
from feelgood.report.aggregates import regret_interval
from feelgood.report.axes import number_axis, wide
from feelgood.report.chart_kinds import ChartKind, PageChart, PageProblem, Section, register_chart
from feelgood.report.charting import alt
from feelgood.report.rendering import Chart, ChartRows, as_table
from feelgood.report.series import Sweep, find_sweeps, name_series, show_axis
from feelgood.report.style import Style, layered, side_by_side


def sweep_charts(results: Sequence[AgentResult]) -> Chart:
    """All sweeps: heat maps over two settings, lines over one."""
    series = name_series(results)
    found = find_sweeps(series)
    if not found:
        raise FeelgoodError(
            "no setting is swept here: run an agent with a list of values, such as lam = [0, 0.1]."
        )
    several = len({s.problem for s in found}) > 1
    maps = [
        heat_map(sweep, width=320).properties(title=_title(sweep, several))
        for sweep in found
        if len(sweep.axes) == 2
    ]
    lines = [
        sweep_lines(group, width=360).properties(title=_problem_title(group, several))
        for group in group_lines(found)
    ]
    chart = side_by_side([*maps, *lines])
    return chart.resolve_scale(color="independent", strokeDash="independent")


def group_lines(sweeps: Sequence[Sweep]) -> list[list[Sweep]]:
    """Sweeps over one setting, those over the same setting of the same problem together."""
    groups: dict[tuple[str, str], list[Sweep]] = {}
    for sweep in sweeps:
        if len(sweep.axes) == 1:
            groups.setdefault((sweep.problem, sweep.axes[0]), []).append(sweep)
    return list(groups.values())


def heat_map(sweep: Sweep, width: int | Literal["container"] = 320) -> alt.LayerChart:
    """Mean final regret over two settings; the darker the lower, the best one framed."""
    a, b = sweep.axes
    rows: ChartRows = []
    for s in sweep.members:
        summary = s.result.regret
        if summary.count:
            rows.append(
                {
                    "x": setting_text(s.result.settings[a]),
                    "y": setting_text(s.result.settings[b]),
                    "mean": rounded(summary.mean),
                    "std": rounded(summary.std) if summary.count > 1 else None,
                    "seeds": summary.count,
                    "text": tile_number(summary.mean),
                }
            )
    means = [row["mean"] for row in rows]
    best = min(means)
    for row in rows:
        row["best"] = int(row["mean"] == best)
        row["dark"] = int(_relative(row["mean"], means) < 0.5)
    base = alt.Chart(as_table(rows))
    x = alt.X("x:O", title=show_axis(a), sort=_levels(sweep, a), axis=alt.Axis(labelAngle=0))
    y = alt.Y("y:O", title=show_axis(b), sort=_levels(sweep, b)[::-1])
    tiles = base.mark_rect().encode(
        x=x,
        y=y,
        color=alt.Color(
            "mean:Q",
            title="mean final regret",
            scale=alt.Scale(scheme="cividis", type="log" if wide(means) else "linear", nice=False),
            legend=alt.Legend(format=",.3~r", gradientLength=140, values=[min(means), max(means)]),
        ),
        tooltip=[
            alt.Tooltip("x:O", title=a),
            alt.Tooltip("y:O", title=b),
            alt.Tooltip("mean:Q", title="mean final regret", format=",.4~g"),
            alt.Tooltip("std:Q", format=",.3~g"),
            alt.Tooltip("seeds:Q", title="chains"),
        ],
    )
    frame = base.transform_filter("datum.best").mark_rect(
        filled=False, stroke="#ff7a1a", strokeWidth=3
    )
    numbers = base.mark_text(fontSize=12).encode(
        x=x,
        y=y,
        text="text:N",
        color=alt.when("datum.dark").then(alt.value("#ffffff")).otherwise(alt.value("#101418")),
    )
    return layered((tiles, frame.encode(x=x, y=y), numbers), width, alt.Step(34))


def sweep_lines(sweeps: Sequence[Sweep], width: int | Literal["container"] = 360) -> alt.LayerChart:
    """Mean final regret over one setting with 95 % intervals, one line per agent."""
    axis = sweeps[0].axes[0]
    rows: ChartRows = []
    for sweep in sweeps:
        for s in sorted(sweep.members, key=lambda s: _level_key(s.result.settings[axis])):
            estimate = regret_interval(s.result)
            if estimate.count:
                rows.append(
                    {
                        "series": sweep.name,
                        "x": setting_text(s.result.settings[axis]),
                        "mean": rounded(estimate.value),
                        "low": rounded(estimate.low),
                        "high": rounded(estimate.high),
                        "seeds": estimate.count,
                    }
                )
    order = list(dict.fromkeys(level for sweep in sweeps for level in _levels(sweep, axis)))
    values = {
        setting_text(s.result.settings[axis]): s.result.settings[axis]
        for w in sweeps
        for s in w.members
    }
    order.sort(key=lambda level: _level_key(values[level]))
    style = Style(labels=tuple(dict.fromkeys(sweep.name for sweep in sweeps)))
    base = alt.Chart(as_table(rows))
    x = alt.X("x:O", title=show_axis(axis), sort=order, axis=alt.Axis(labelAngle=0))
    title = "mean final regret"
    colour = alt.Color("series:N", title="agent", scale=alt.Scale(domain=list(style.labels)))
    dash = style.dash()
    y = alt.Y("mean:Q", title=title, scale=alt.Scale(zero=False), axis=number_axis())
    bars = base.mark_rule(strokeWidth=2, opacity=0.6).encode(
        x=x, y=alt.Y("low:Q", title=title), y2="high:Q", color=colour
    )
    lines = base.mark_line(strokeWidth=2).encode(x=x, y=y, color=colour, strokeDash=dash)
    points = base.mark_point(filled=True, size=60, opacity=1).encode(
        x=x,
        y=y,
        color=colour,
        tooltip=[
            alt.Tooltip("series:N", title="agent"),
            alt.Tooltip("x:O", title=axis),
            alt.Tooltip("mean:Q", title="mean final regret", format=",.4~g"),
            alt.Tooltip("low:Q", title="interval from", format=",.4~g"),
            alt.Tooltip("high:Q", title="to", format=",.4~g"),
            alt.Tooltip("seeds:Q", title="chains"),
        ],
    )
    return layered((bars, lines, points), width, 260)


def _title(sweep: Sweep, several: bool) -> str:
    return f"{sweep.problem}: {sweep.name}" if several else sweep.name


def _problem_title(group: Sequence[Sweep], several: bool) -> str:
    return group[0].problem if several else f"over {group[0].axes[0]}"


def _level_key(value: Any) -> tuple[int, float, str]:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return (0, float(value), "") if number else (1, 0.0, str(value))


def _levels(sweep: Sweep, axis: str) -> list[str]:
    """The values of a swept setting in their order, as they are shown."""
    values = sorted((s.result.settings[axis] for s in sweep.members), key=_level_key)
    return list(dict.fromkeys(setting_text(value) for value in values))


def _relative(value: float, values: Sequence[float]) -> float:
    """Where a value lies between the smallest and the largest, 0 to 1."""
    low, high = min(values), max(values)
    if wide((low, high)):
        value, low, high = math.log(value), math.log(low), math.log(high)
    return (value - low) / (high - low) if high > low else 0.0


def _on_page(problem: PageProblem) -> list[PageChart]:
    found = find_sweeps(problem.series)
    out = []
    for sweep in found:
        if len(sweep.axes) == 2:
            name = f"{sweep.name}: {' and '.join(map(show_axis, sweep.axes))}"
            out.append(PageChart(name, {"": heat_map(sweep, "container")}, name))
    for lines in group_lines(found):
        name = f"over {show_axis(lines[0].axes[0])}"
        out.append(PageChart(name, {"": sweep_lines(lines, "container")}, name))
    return out


register_chart(
    ChartKind(
        name="sweep",
        section=Section(
            "sweeps",
            "Settings that were swept",
            "Mean final regret, everything else being equal. The lowest of each map is framed.",
            place=30,
        ),
        draw=sweep_charts,
        on_page=_on_page,
    )
)
