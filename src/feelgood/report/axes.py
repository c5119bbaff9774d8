"""Axes, scales and tooltips that charts share."""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from feelgood.report.charting import alt


def near_tooltip(fields: Mapping[str, str]) -> Any:
    """A tooltip for points of which the nearest is picked: titles, and expressions of `d`.

    Vega-Lite puts the tooltip on invisible cells around the points. It looks for the fields in the
    cell, where they are undefined, and not in its point. Here every field is the point's.
    """
    told = (f"'{title}': {told}" for title, told in fields.items())
    text = "{" + ", ".join(told) + "}"
    return alt.TooltipValue(alt.ExprRef(re.sub(r"\bd\.", "(datum.datum || datum).", text)))


def value_scale(log: bool, zero: bool = True, nice: bool = True) -> alt.Scale:
    """Logarithmic, or one that begins at `zero` and ends at a round number (`nice`)."""
    return alt.Scale(type="log", nice=False) if log else alt.Scale(zero=zero, nice=nice)


def number_axis(log_of: Sequence[float | int] = (), form: str = ",~r") -> alt.Axis:
    """A quiet axis; a logarithmic one of these values gets lines at 1, 2 and 5 only."""
    axis = alt.Axis(format=form, labelOverlap="greedy", tickCount=6)
    positive = [v for v in log_of if v > 0]
    if not positive or max(positive) < 10 * min(positive):
        return axis
    low, high = math.floor(math.log10(min(positive))), math.ceil(math.log10(max(positive)))
    steps = (1, 2, 5) if high - low <= 4 else (1,)
    axis.values = [k * 10.0**e for e in range(low, high + 1) for k in steps]
    return axis


def label_axis() -> alt.Axis:
    """An axis of names."""
    return alt.Axis(labelLimit=240, grid=False, ticks=False, domain=False)


def wide(values: Sequence[float]) -> bool:
    """Whether a logarithmic scale shows these better."""
    return len(values) > 0 and min(values) > 0 and max(values) > 5 * min(values)
