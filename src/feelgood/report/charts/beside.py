"""Our numbers beside the published ones."""

import math
from collections.abc import Sequence
from typing import Literal

import altair as alt

from feelgood.core.errors import FeelgoodError
from feelgood.report.drawing import (
    Rows,
    as_table,
    figures,
    label_axis,
    layered,
    number_axis,
)
from feelgood.report.tables import Comparison
from feelgood.stats.summary import Summary


def beside_published(
    comparisons: Sequence[Comparison],
    width: int | Literal["container"] = 520,
    names: Sequence[str] | None = None,
) -> alt.LayerChart:
    """Ours beside the published, mean ± std of each, on a logarithmic axis.

    `names` are those of the rows, one per comparison; by default the agents with what sets the
    published numbers apart.
    """
    done = [c for c in comparisons if c.ours is not None]
    if not done:
        raise FeelgoodError(
            "nothing here is in the paper's tables: run 'feelgood reproduce' for a comparison."
        )
    several = len({c.row.testbed for c in done}) > 1
    usual = [f"{c.row.testbed} {c.label}" if several else c.label for c in comparisons]
    shown = [n for c, n in zip(comparisons, names or usual, strict=True) if c.ours is not None]
    data: Rows = []
    for order, c in enumerate(done):
        theirs = c.row.published
        for source, of in (("ours", c.ours), ("published", theirs)):
            if of is None or not of.mean > 0:
                continue
            spread = of.std if math.isfinite(of.std) else 0.0
            data.append(
                {
                    "row": shown[order],
                    "order": order,
                    "table": theirs.table,
                    "source": source,
                    "mean": figures(of.mean),
                    "std": figures(spread),
                    "low": figures(max(of.mean - spread, of.mean / 10)),
                    "high": figures(of.mean + spread),
                    "seeds": of.count if isinstance(of, Summary) else of.seeds,
                    "verdict": c.verdict.value,
                }
            )
    base = alt.Chart(as_table(data))
    y = alt.Y("row:N", title=None, sort=alt.EncodingSortField("order", op="min"), axis=label_axis())
    offset = alt.YOffset("source:N", sort=["ours", "published"])
    title = "regret: mean ± std, logarithmic"
    scale = alt.Scale(type="log", nice=False, padding=12)
    axis = number_axis([row[end] for row in data for end in ("low", "high")])
    sources = ["ours", "published"]
    colour = alt.Color(
        "source:N", title=None, scale=alt.Scale(domain=sources), legend=alt.Legend(orient="top")
    )
    shape = alt.Shape(
        "source:N",
        title=None,
        scale=alt.Scale(domain=sources, range=["circle", "diamond"]),
        legend=alt.Legend(orient="top"),
    )
    faint = (
        alt.when("datum.verdict == 'not comparable'").then(alt.value(0.35)).otherwise(alt.value(1))
    )
    rules = base.mark_rule(strokeWidth=2).encode(
        x=alt.X("low:Q", title=title, scale=scale, axis=axis),
        x2="high:Q",
        y=y,
        yOffset=offset,
        color=colour,
        opacity=faint,
    )
    points = base.mark_point(filled=True, size=60).encode(
        x=alt.X("mean:Q", title=title, scale=scale, axis=axis),
        y=y,
        yOffset=offset,
        color=colour,
        shape=shape,
        opacity=faint,
        tooltip=[
            alt.Tooltip("row:N", title="agent"),
            alt.Tooltip("table:N"),
            alt.Tooltip("source:N", title="from"),
            alt.Tooltip("mean:Q", format=",.4~g"),
            alt.Tooltip("std:Q", format=",.3~g"),
            alt.Tooltip("seeds:Q"),
            alt.Tooltip("verdict:N"),
        ],
    )
    return layered((rules, points), width, alt.Step(13))
