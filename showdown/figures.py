"""Regret against a number that belongs to a run, and regret in units of another run's."""

from collections.abc import Sequence
from typing import Any

import altair as alt

from feelgood.core.numbers import rounded
from feelgood.engine.results import AgentResult
from feelgood.report.aggregates import regret_interval
from feelgood.report.rendering import Chart
from showdown.effects import Effect


def scatter(
    points: Sequence[tuple[str, float, AgentResult]],
    title: str,
    connect: bool = False,
    form: str = "~g",
) -> Chart:
    """Mean final regret with its interval against a number, both logarithmic; one colour per name.

    With `connect` the points of a name are joined by a line; `form` writes the numbers of the
    lower axis. Points that a logarithm cannot show
    are left out.
    """
    rows = []
    for name, value, result in points:
        regret = regret_interval(result)
        if value > 0 and regret.value > 0:
            values = {"x": value, "regret": regret.value, "high": regret.high}
            values["low"] = max(regret.low, regret.value / 10)
            rows.append({"agent": name} | {k: rounded(v) for k, v in values.items()})
    base = alt.Chart(alt.InlineData(values=rows))
    log = alt.Scale(type="log", nice=False, padding=16)
    across = alt.X("x:Q", title=title, scale=log, axis=alt.Axis(format=form, tickCount=6))
    axis = alt.Axis(format="~g", tickCount=6)
    up = "mean final regret, logarithmic"
    colour, shape = alt.Color("agent:N", title="agent"), alt.Shape("agent:N", legend=None)
    rules = base.mark_rule(strokeWidth=2, opacity=0.5).encode(
        x=across, y=alt.Y("low:Q", title=up, scale=log), y2="high:Q", color=colour
    )
    y = alt.Y("regret:Q", title=up, scale=log, axis=axis)
    dots = base.mark_point(filled=True, size=90, opacity=1).encode(
        x=across, y=y, color=colour, shape=shape
    )
    lines = [base.mark_line(strokeWidth=1.5).encode(x=across, y=y, color=colour)] if connect else []
    return alt.layer(rules, *lines, dots).properties(width=560, height=340)


def bonus_chart(effects: Sequence[Effect]) -> Chart:
    """Regret in units of the base's mean over λ, with the interval of the difference."""
    rows: list[dict[str, Any]] = []
    for e in effects:
        if e.changed is None or e.base is None or e.difference is None:
            continue
        _, unit = e.regrets
        ends = {"ratio": e.difference.mean, "low": e.difference.low, "high": e.difference.high}
        rows.append(
            {"testbed": e.changed.testbed, "lam": f"{e.changed.settings['lam']:g}"}
            | {k: rounded(max(1.0 + v / unit, 0.05)) for k, v in ends.items()}
        )
    order = sorted({row["lam"] for row in rows}, key=float)
    testbeds = list(dict.fromkeys(row["testbed"] for row in rows))
    base = alt.Chart(alt.InlineData(values=rows))
    title = "regret with bonus / without, logarithmic"
    scale = alt.Scale(type="log", nice=False, padding=12)
    axis = alt.Axis(format="~g", values=[0.5, 1, 2, 5, 10, 20, 50])
    name = "weight λ of the feel-good bonus"
    across = alt.X("lam:O", title=name, sort=order, axis=alt.Axis(labelAngle=0))
    aside = alt.XOffset("testbed:N", sort=testbeds)
    colour = alt.Color("testbed:N", title="testbed", sort=testbeds)
    shape = alt.Shape("testbed:N", legend=None, sort=testbeds)
    rules = base.mark_rule(strokeWidth=2.5).encode(
        x=across,
        xOffset=aside,
        y=alt.Y("low:Q", title=title, scale=scale, axis=axis),
        y2="high:Q",
        color=colour,
    )
    dots = base.mark_point(filled=True, size=80, opacity=1).encode(
        x=across, xOffset=aside, y=alt.Y("ratio:Q", scale=scale), color=colour, shape=shape
    )
    one = alt.Chart(alt.InlineData(values=[{"one": 1}])).mark_rule(strokeDash=[4, 4])
    return alt.layer(one.encode(y="one:Q"), rules, dots).properties(width=560, height=300)
