"""Altair charts of results, one file per chart.

Everything is aggregated here; a chart holds means, bands and intervals, and at most `DOTS` seeds of
a result. What they share, and how they become files, is in `feelgood.report.drawing`.

The functions on lists of `AgentResult` draw one panel per testbed. Each rests on a function that
draws one panel (`…_panel`), which the page uses with its own `Style`.
"""

from feelgood.report.charts.beside import beside_published
from feelgood.report.charts.compute import (
    COSTS,
    Cost,
    compute_panel,
    cost_rows,
    regret_against_compute,
)
from feelgood.report.charts.curves import Band, curve_rows, curves_panel, regret_curves
from feelgood.report.charts.final import final_intervals, final_panel
from feelgood.report.charts.health import MEASURES, health_measures, health_panel, sampler_health
from feelgood.report.charts.sweeps import group_lines, heat_map, sweep_charts, sweep_lines

__all__ = [
    "COSTS",
    "MEASURES",
    "Band",
    "Cost",
    "beside_published",
    "compute_panel",
    "cost_rows",
    "curve_rows",
    "curves_panel",
    "final_intervals",
    "final_panel",
    "group_lines",
    "health_measures",
    "health_panel",
    "heat_map",
    "regret_against_compute",
    "regret_curves",
    "sampler_health",
    "sweep_charts",
    "sweep_lines",
]
