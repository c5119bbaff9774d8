"""Figures of the page of the worlds."""

from collections.abc import Sequence
from typing import Any

import altair as alt

from feelgood.core.numbers import rounded
from feelgood.engine.results import AgentResult
from feelgood.report.rendering import Chart
from feelgood.stats.intervals import Estimate, bca
from showdown.world_runs import MIRRORED, Point, on_frontier, shares, worlds_of

#: Regrets below this are drawn there: the axes are logarithmic.
LEAST = 0.1


def _log(title: str, **more: Any) -> dict[str, Any]:
    scale = alt.Scale(type="log", nice=False, padding=14)
    return {"title": title, "scale": scale, "axis": alt.Axis(format="~g", tickCount=5)} | more


def frontier(points: Sequence[Point]) -> Chart:
    """Two panels per world: regret in the bad world over that under the prior and in the mirror."""
    kinds = list(dict.fromkeys(p.kind for p in points))
    panels = []
    for testbed in dict.fromkeys(p.testbed for p in points):
        own = [p for p in points if p.testbed == testbed]
        best = on_frontier(own)
        rows = [
            {
                "agent": p.kind,
                "bayes": rounded(max(p.bayes_mean, LEAST)),
                "mirror": rounded(max(float(p.mirror.mean()), LEAST)),
                "bad": rounded(p.bad_mean),
                "ring": p in best,
            }
            for p in own
        ]
        base = alt.Chart(alt.InlineData(values=rows))
        for name, title in (("bayes", "averaged over the prior"), ("mirror", "in the mirror")):
            x = alt.X(f"{name}:Q", **_log(title))
            panels.append(_ringed(base, x, kinds).properties(width=250, height=150, title=testbed))
    return alt.concat(*panels, columns=2)


def _ringed(base: Chart, x: alt.X, kinds: Sequence[str]) -> Chart:
    """Dots by kind, those of the frontier with a ring."""
    y = alt.Y("bad:Q", **_log("in the bad world"))
    dots = base.mark_point(filled=True, size=55, opacity=1).encode(
        x=x,
        y=y,
        color=alt.Color("agent:N", title="agent", sort=kinds),
        shape=alt.Shape("agent:N", legend=None, sort=kinds),
    )
    rings = base.transform_filter("datum.ring").mark_point(size=190, strokeWidth=1.2)
    return alt.layer(rings.encode(x=x, y=y, color=alt.value("#888")), dots)


def prices(rows: Sequence[tuple[str, float, Estimate]]) -> Chart:
    """Measured cost per round over the law's, with intervals and the line of equality."""
    table = [
        {
            "testbed": name,
            "law": rounded(law),
            "rate": rounded(rate.value),
            "low": rounded(rate.low),
            "high": rounded(rate.high),
        }
        for name, law, rate in rows
        if rate.low > 0
    ]
    base = alt.Chart(alt.InlineData(values=table))
    x = alt.X("law:Q", **_log("cost per round by the law"))
    up = _log("measured cost per round")
    colour = alt.Color("testbed:N", title="testbed")
    rules = base.mark_rule(strokeWidth=2, opacity=0.6).encode(
        x=x, y=alt.Y("low:Q", **up), y2="high:Q", color=colour
    )
    dots = base.mark_point(filled=True, size=60, opacity=1).encode(
        x=x, y=alt.Y("rate:Q", **up), color=colour, shape=alt.Shape("testbed:N", legend=None)
    )
    laws = [law for _, law, rate in rows if rate.low > 0]
    ends = [min(laws), max(laws)]
    line = alt.Chart(alt.InlineData(values=[{"law": v, "rate": v} for v in ends]))
    equal = line.mark_line(strokeDash=[4, 4], color="#888").encode(x="law:Q", y="rate:Q")
    return alt.layer(equal, rules, dots).properties(width=560, height=300)


def sampler_shares(results: Sequence[tuple[str, str, AgentResult]]) -> Chart:
    """The worse arm's share of the plays along the run; one panel per world."""
    names = list(dict.fromkeys(name for name, _, _ in results))
    worlds = dict.fromkeys(world for _, world, _ in results)
    return alt.concat(*(_shares_in(world, results, names) for world in worlds), columns=2)


def _shares_in(
    world: str, results: Sequence[tuple[str, str, AgentResult]], names: Sequence[str]
) -> Chart:
    rows = [
        {"agent": name, "round": int(at), "share": rounded(float(share))}
        for name, own, r in results
        if own == world
        for at, share in zip(*shares(r), strict=True)
    ]
    base = alt.Chart(alt.InlineData(values=rows))
    exact = "indexof(datum.agent, 'exact') == 0"
    encoded = {
        "x": alt.X("round:Q", title="round"),
        "y": alt.Y("share:Q", title="share of the worse arm", axis=alt.Axis(format="%")),
        "color": alt.Color("agent:N", title="agent", sort=names),
    }
    return alt.layer(
        base.transform_filter(f"!({exact})")
        .mark_line(strokeWidth=1.5, point=True)
        .encode(**encoded),
        base.transform_filter(exact).mark_line(strokeWidth=4, opacity=0.8).encode(**encoded),
    ).properties(width=260, height=260, title=f"{world} world")


def prior_strength(results: Sequence[AgentResult]) -> Chart:
    """Regret on linear-trap-80 over the prior's deviation, with intervals: bad world and mirror."""
    panels = [_prior_strength(results, world) for world in MIRRORED]
    return alt.concat(*panels, columns=2)


def _prior_strength(results: Sequence[AgentResult], world: str) -> Chart:
    rows: list[dict[str, Any]] = []
    bonuses = {
        "λ_s = 1/√s": ("sqrt", 1.0),
        "λ_s = 0.1/√s": ("sqrt", 0.1),
        "λ = 0.01": ("constant", 0.01),
    }
    for number, (name, (schedule, lam)) in enumerate(bonuses.items()):
        pairs = worlds_of(results, {"lam_schedule": schedule, "lam": lam})
        for (testbed, prior, noise), pair in pairs.items():
            if testbed != "linear-trap-80" or noise != 1.0 or world not in pair:
                continue
            bold, plain = pair[world]
            for agent, r in ((name, bold), *([("plain", plain)] if number == 0 else ())):
                mean = bca(r.final_regret)
                low = max(mean.low, mean.value / 10)
                ends = {"regret": mean.value, "low": low, "high": mean.high}
                rows.append(
                    {"agent": agent, "prior": prior} | {k: rounded(v) for k, v in ends.items()}
                )
    base = alt.Chart(alt.InlineData(values=rows))
    x = alt.X("prior:Q", **_log("standard deviation of the prior"))
    where = "bad world" if world == "bad" else world
    up = _log(f"mean regret in the {where}")
    colour = alt.Color("agent:N", title="agent", sort=["plain", *bonuses])
    rules = base.mark_rule(strokeWidth=2, opacity=0.6).encode(
        x=x, y=alt.Y("low:Q", **up), y2="high:Q", color=colour
    )
    lines = base.mark_line(strokeWidth=1.5, point=True).encode(
        x=x, y=alt.Y("regret:Q", **up), color=colour
    )
    return alt.layer(rules, lines).properties(width=250, height=230)
