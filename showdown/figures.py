"""Regret against a number that belongs to a run."""

from collections.abc import Sequence
from typing import Any

import altair as alt

from feelgood.core.numbers import rounded
from feelgood.engine.results import AgentResult
from feelgood.report.aggregates import regret_interval
from feelgood.report.rendering import Chart


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


def over_weights(results: Sequence[AgentResult]) -> Chart:
    """Mean final regret over a constant λ, beside no bonus and the price law's ceiling, λT/(4η)."""
    testbeds = sorted({r.testbed for r in results})
    return alt.concat(*(_weights_on(t, results) for t in testbeds), columns=2)


def _weights_on(testbed: str, results: Sequence[AgentResult]) -> Chart:
    own = sorted((r for r in results if r.testbed == testbed), key=lambda r: r.settings["lam"])
    points = [r for r in own if r.settings["lam"] > 0]
    rows = []
    for r in points:
        mean = regret_interval(r)
        ends = {"regret": mean.value, "low": mean.low, "high": mean.high}
        rows.append({"lam": r.settings["lam"]} | {k: rounded(v) for k, v in ends.items()})
    log = alt.Scale(type="log", nice=False, padding=16)
    x = alt.X("lam:Q", title="λ, logarithmic", scale=log, axis=alt.Axis(format="~g", tickCount=5))
    up: dict[str, Any] = {"title": "mean final regret, logarithmic", "scale": log}
    y = alt.Y("regret:Q", **up, axis=alt.Axis(format="~g", tickCount=6))
    base = alt.Chart(alt.InlineData(values=rows))
    layers = [
        base.mark_rule(strokeWidth=2, opacity=0.6).encode(x=x, y=alt.Y("low:Q", **up), y2="high:Q"),
        base.mark_line(strokeWidth=1.5, point=True).encode(x=x, y=y),
    ]
    for r in own:
        if r.settings["lam"] == 0:
            plain = regret_interval(r).value
            law = [(p.settings["lam"], p.rounds / (4.0 * p.settings["eta"])) for p in points]
            none = [{"lam": lam, "regret": rounded(plain)} for lam, _ in law]
            most = [{"lam": lam, "regret": rounded(plain + lam * cost)} for lam, cost in law]
            flat, ceiling = (alt.Chart(alt.InlineData(values=v)) for v in (none, most))
            layers.append(flat.mark_line(color="#888").encode(x=x, y=y))
            layers.append(ceiling.mark_line(color="#888", strokeDash=[4, 4]).encode(x=x, y=y))
    return alt.layer(*layers).properties(width=250, height=230, title=testbed)
