"""Pages about logs: what a live bandit did, and what other agents would have earned."""

import math

from feelgood.core.numbers import with_half_width
from feelgood.evaluation.evaluating import LogEvaluation
from feelgood.evaluation.log_summary import LogSummary
from feelgood.evaluation.value_table import (
    ESTIMATOR_NAMES,
    table_caption,
    used_estimators,
    value_table,
)
from feelgood.report.charting import alt
from feelgood.report.plain_page import html_table, picture, plain_page, sentences
from feelgood.report.rendering import Chart, ChartRows, as_table

#: Arms that are drawn on their own; the others are drawn together.
MOST_ARMS = 8


def evaluation_page(found: LogEvaluation, name: str) -> str:
    """What agents would have earned on a log, as a page."""
    heads, rows = value_table(found)
    used = used_estimators(found)
    parts = [("Which agent would have done better?", sentences([found.sentence, *found.warnings]))]
    parts.append(("Estimates", sentences([table_caption(found)]) + html_table(heads, rows)))
    drawn = picture(_intervals(found, used), "estimates with intervals")
    parts.append(("Intervals", sentences(["Dashed: what the log itself earned."]) + drawn))
    parts.append(("What the agents would play", picture(_shares(found), "share of arms per agent")))
    if found.notes:
        parts.append(("Notes on the log", sentences(found.notes)))
    lede = f"{len(found.values)} agents judged on {found.decisions:,} decisions of the log."
    return plain_page(f"Agents on {name}", lede, parts)


def _intervals(found: LogEvaluation, used: list[str]) -> Chart:
    rows: ChartRows = [
        {
            "agent": value.agent,
            "estimator": ESTIMATOR_NAMES[key],
            "value": one.value,
            "low": one.low,
            "high": one.high,
        }
        for value in found.values
        for key in used
        if (one := value.values.get(key)) is not None and math.isfinite(one.value)
    ]
    base = alt.Chart(as_table(rows))
    y = alt.Y("estimator:N", title=None, sort=[ESTIMATOR_NAMES[key] for key in used])
    x = alt.X("value:Q", title="reward per decision", scale=alt.Scale(zero=False))
    rule = base.mark_rule(strokeWidth=3).encode(x=alt.X("low:Q", title=""), x2="high:Q", y=y)
    dots = base.mark_point(filled=True, size=80, opacity=1).encode(x=x, y=y)
    coloured = alt.layer(rule, dots).encode(color=alt.Color("agent:N", legend=None))
    log = base.mark_rule(strokeDash=[4, 4], color="gray").encode(x=alt.datum(found.log.value))
    header = alt.Header(labelAngle=0, labelOrient="top", labelAnchor="start")
    names = [value.agent for value in found.values]
    chart: Chart = (
        alt.layer(log, coloured)
        .properties(width=560)
        .facet(row=alt.Row("agent:N", title=None, sort=names, header=header))
    )
    return chart


def _shares(found: LogEvaluation) -> Chart:
    total: dict[str, float] = {}
    for value in found.values:
        for arm, share in value.shares.items():
            total[arm] = total.get(arm, 0.0) + share
    shown = sorted(total, key=lambda arm: -total[arm])[:MOST_ARMS]
    rows: ChartRows = []
    for value in found.values:
        rest = sum(share for arm, share in value.shares.items() if arm not in shown)
        mine = {arm: value.shares[arm] for arm in shown} | ({"others": rest} if rest else {})
        rows += [{"agent": value.agent, "arm": a, "share": s} for a, s in mine.items()]
    return (
        alt.Chart(as_table(rows))
        .mark_bar()
        .encode(
            x=alt.X("share:Q", title="share of decisions", scale=alt.Scale(domain=[0, 1])),
            y=alt.Y("agent:N", title=None, sort=[value.agent for value in found.values]),
            color=alt.Color("arm:N", sort=[*shown, "others"]),
        )
        .properties(width=560)
    )


def log_page(summary: LogSummary, name: str, notes: tuple[str, ...] = ()) -> str:
    """What a live bandit did, as a page."""
    paid = with_half_width(summary.reward, summary.half)
    period = f", from {summary.first} to {summary.last}" if summary.first else ""
    lede = (
        f"{summary.decisions:,} decisions{period}, {summary.rewarded:,} with a reward, {paid} on "
        "average (95 % interval)."
    )
    rows = [
        [
            arm.arm,
            f"{arm.offered:,}",
            f"{arm.played:,}",
            "–" if math.isnan(arm.expected) else f"{arm.expected:,.0f}",
            with_half_width(arm.reward, arm.half),
        ]
        for arm in summary.arms
    ]
    heads = ["arm", "offered", "played", "expected by its probabilities", "mean reward"]
    parts = [
        ("Findings", sentences([*summary.findings, *notes])),
        ("Arms", html_table(heads, rows)),
        ("Shares of arms", picture(_shares_along(summary), "share of arms along the log")),
        ("Rewards", picture(_rewards_along(summary), "mean reward along the log")),
    ]
    if any(math.isfinite(part.probability) for part in summary.parts):
        chart = _probabilities_along(summary)
        parts.append(("Probabilities", picture(chart, "mean probability of the played arm")))
    return plain_page(f"The log {name}", lede, parts)


def _shares_along(summary: LogSummary) -> Chart:
    shown = [arm.arm for arm in summary.arms[:MOST_ARMS]]
    rows: ChartRows = []
    for part in summary.parts:
        rest = sum(share for arm, share in part.shares.items() if arm not in shown)
        mine = {arm: part.shares[arm] for arm in shown}
        if len(summary.arms) > len(shown):
            mine["others"] = rest
        rows += [{"decision": part.end, "arm": a, "share": s} for a, s in mine.items()]
    return (
        alt.Chart(as_table(rows))
        .mark_line(point=True)
        .encode(
            x=alt.X("decision:Q", title="decision"),
            y=alt.Y("share:Q", title="share of decisions", scale=alt.Scale(domain=[0, 1])),
            color=alt.Color("arm:N", sort=[*shown, "others"]),
        )
        .properties(width=620, height=260)
    )


def _rewards_along(summary: LogSummary) -> Chart:
    rows: ChartRows = [
        {
            "decision": part.end,
            "reward": part.reward,
            "low": part.reward - part.half,
            "high": part.reward + part.half,
        }
        for part in summary.parts
        if math.isfinite(part.half)
    ]
    if not rows:
        rows = [{"decision": 0, "reward": 0.0, "low": 0.0, "high": 0.0}]
    base = alt.Chart(as_table(rows)).encode(x=alt.X("decision:Q", title="decision"))
    band = base.mark_area(opacity=0.25).encode(y=alt.Y("low:Q", title=""), y2="high:Q")
    line = base.mark_line(point=True).encode(y=alt.Y("reward:Q", title="mean reward"))
    return alt.layer(band, line).properties(width=620, height=260)


def _probabilities_along(summary: LogSummary) -> Chart:
    rows: ChartRows = [
        {"decision": part.end, "probability": part.probability}
        for part in summary.parts
        if math.isfinite(part.probability)
    ]
    return (
        alt.Chart(as_table(rows))
        .mark_line(point=True)
        .encode(
            x=alt.X("decision:Q", title="decision"),
            y=alt.Y("probability:Q", title="mean probability", scale=alt.Scale(domain=[0, 1])),
        )
        .properties(width=620, height=260)
    )
