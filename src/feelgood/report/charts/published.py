"""Our numbers beside the published ones."""

import math
from collections.abc import Sequence
from typing import Literal

from feelgood.core.errors import FeelgoodError
from feelgood.core.numbers import rounded
from feelgood.engine.results import AgentResult
from feelgood.report.axes import label_axis, number_axis
from feelgood.report.chart_kinds import ChartKind, PageChart, PageProblem, Section, register_chart
from feelgood.report.charting import alt
from feelgood.report.matching import find_comparisons
from feelgood.report.published_comparisons import HOW_JUDGED, ROW_LEVEL, PublishedComparison
from feelgood.report.rendering import ChartRows, as_table
from feelgood.report.style import layered
from feelgood.stats.summary import Summary


def beside_published(
    comparisons: Sequence[PublishedComparison],
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
    data = _rows(done, shown)
    base = alt.Chart(as_table(data))
    y = alt.Y("row:N", title=None, sort=alt.EncodingSortField("order", op="min"), axis=label_axis())
    offset = alt.YOffset("source:N", sort=["ours", "published"])
    title = "regret: mean ± std, logarithmic"
    scale = alt.Scale(type="log", nice=False, padding=12)
    axis = number_axis([row[end] for row in data for end in ("low", "high")])
    colour, shape = _told_apart()
    faint = alt.when("datum.verdict == 'not run yet'").then(alt.value(0.35)).otherwise(alt.value(1))
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


def _told_apart() -> tuple[alt.Color, alt.Shape]:
    """Ours and the published by colour and by shape."""
    sources, legend = ["ours", "published"], alt.Legend(orient="top")
    colour = alt.Color("source:N", title=None, scale=alt.Scale(domain=sources), legend=legend)
    scale = alt.Scale(domain=sources, range=["circle", "diamond"])
    return colour, alt.Shape("source:N", title=None, scale=scale, legend=legend)


def _rows(done: Sequence[PublishedComparison], names: Sequence[str]) -> ChartRows:
    """Two rows per comparison: ours and the published."""
    data: ChartRows = []
    for order, c in enumerate(done):
        theirs = c.row.published
        for source, of in (("ours", c.ours), ("published", theirs)):
            if of is None or not of.mean > 0:
                continue
            spread = of.std if math.isfinite(of.std) else 0.0
            data.append(
                {
                    "row": names[order],
                    "order": order,
                    "table": theirs.table,
                    "source": source,
                    "mean": rounded(of.mean),
                    "std": rounded(spread),
                    "low": rounded(max(of.mean - spread, of.mean / 10)),
                    "high": rounded(of.mean + spread),
                    "seeds": of.count if isinstance(of, Summary) else of.seeds,
                    "verdict": c.verdict.value,
                }
            )
    return data


def published_of(results: Sequence[AgentResult]) -> alt.LayerChart:
    """The published numbers that belong to these results, and ours beside them."""
    return beside_published(find_comparisons(results))


def _on_page(problem: PageProblem) -> list[PageChart]:
    if not problem.beside:
        return []
    names, comparisons = zip(*problem.beside, strict=True)
    chart = beside_published(comparisons, "container", names)
    return [PageChart(f"Ours beside the published on {problem.name}", {"": chart})]


register_chart(
    ChartKind(
        name="published",
        section=Section(
            "published",
            "Ours beside the published",
            f"Mean ± std. {HOW_JUDGED.format(ROW_LEVEL)} Runs with other rounds than published "
            "are drawn faintly; the table has the reason.",
            place=40,
        ),
        draw=published_of,
        on_page=_on_page,
    )
)
