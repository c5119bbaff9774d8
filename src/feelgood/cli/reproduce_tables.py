"""Tables of `feelgood reproduce` beside the comparison itself."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.table import Table

if TYPE_CHECKING:
    from feelgood.paper.tuning import NetworkChoice, NetworkTuning


def networks_table(choices: "Sequence[NetworkChoice]", tuning: "NetworkTuning") -> Table:
    """Both networks' mean regrets, and which was chosen."""
    from feelgood.paper.tuning import ARCHITECTURES

    without = f" No network to choose: {', '.join(tuning.untuned)}." if tuning.untuned else ""
    shown = Table(
        title="networks chosen by tuning",
        caption=f"Mean regret of {tuning.budget}, by hidden layers; for every agent the same. "
        f"The smaller one is used below; –: not run, or diverged.{without}",
        caption_justify="left",
    )
    for name in ("testbed", "agent"):
        shown.add_column(name)
    for layers in ARCHITECTURES:
        shown.add_column(layers, justify="right")
    shown.add_column("chosen")
    for choice in choices:
        means = (choice.regrets[layers] for layers in ARCHITECTURES)
        numbers = ("–" if math.isnan(mean) else f"{mean:,.1f}" for mean in means)
        shown.add_row(choice.testbed, choice.agent, *numbers, choice.layers)
    return shown


def catalogue_table() -> Table:
    """The tables, how many rows they have, and roughly how long they take."""
    from feelgood.core.numbers import duration
    from feelgood.engine.device import usable_cores
    from feelgood.paper.costs import estimated_seconds, speed_of_this_machine
    from feelgood.paper.published_rows import TITLES, missing, rows

    speed, cores = speed_of_this_machine(), usable_cores()
    shown = Table(
        title="tables of the paper",
        caption=(
            f"Estimated for {cores} core(s) of this machine with the published seeds and rounds, "
            "as if nothing were in the store; good to a factor of about three."
        ),
    )
    for name in ("table", "what"):
        shown.add_column(name)
    for name in ("rows", "not available", "time"):
        shown.add_column(name, justify="right")
    for name, title in TITLES.items():
        all_rows = rows(name)
        here = [r for r in all_rows if missing(r) is None]
        seconds = estimated_seconds(here) if here else None
        shown.add_row(
            name,
            title,
            str(len(all_rows)),
            str(len(all_rows) - len(here)),
            "–" if seconds is None else duration(max(1.0, seconds / (speed * cores))),
        )
    return shown
