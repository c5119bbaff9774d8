"""Roughly how long the paper's tables take: measured once, scaled to the machine at hand."""

import time
from collections.abc import Sequence

import numpy as np

from feelgood.paper.tables import Row
from feelgood.policies import grammar

#: Core-seconds of ten chains over the published number of rounds on the reference machine, by
#: testbed and parts of the agent: preconditioned, bonus, kernel. Smoothed bonuses cost as plain
#: ones, underdamped dynamics as overdamped, agents without a chain next to nothing.
COSTS: dict[str, dict[str, float]] = {
    "linear-20": {
        "lmc": 1.0,
        "plmc": 1.5,
        "svrglmc": 8.4,
        "mala": 1.1,
        "hmc": 4.0,
        "phmc": 8.0,
        "fglmc": 27.0,
        "pfglmc": 20.0,
        "fgmala": 30.0,
        "fghmc": 120.0,
        "pfghmc": 150.0,
    },
}
CLOSED_FORM = 0.2
#: Core-seconds to compile one program; agents that differ in numbers only share it.
COMPILING = 8.0
#: Core-seconds of `_yardstick` on the reference machine.
REFERENCE = 0.022


def _yardstick() -> float:
    """Core-seconds of a fixed piece of work: many small steps, as the chains make them."""
    matrix, state = np.eye(20) + 0.01, np.ones(20)
    start = time.process_time()
    for _ in range(20_000):
        state = np.tanh(matrix @ state)
    return time.process_time() - start


def speed_of_this_machine() -> float:
    """How fast a core here is, in cores of the reference machine; takes a fraction of a second."""
    return REFERENCE / min(_yardstick() for _ in range(3))


def estimated_seconds(rows: Sequence[Row]) -> float | None:
    """Core-seconds of these rows on the reference machine; None where one was never measured."""
    total = 0.0
    runs = {(r.testbed, r.agent, r.preset, tuple(sorted(r.settings.items()))): r for r in rows}
    for row in runs.values():
        cost = _cost(row)
        if cost is None:
            return None
        total += cost * row.published.seeds / 10
    return total + COMPILING * len({(r.testbed.split("-")[0], r.agent) for r in rows})


def _cost(row: Row) -> float | None:
    testbed = row.testbed if row.testbed in COSTS else row.testbed.split("-")[0]
    if testbed not in COSTS:
        return None
    parts = grammar.read(row.agent)
    if parts is None:
        return CLOSED_FORM
    bonus = "fg" if parts.bonus_name and row.settings.get("lam") != 0 else ""
    variant = "" if parts.variant == "u" else parts.variant
    return COSTS[testbed].get(
        f"{'p' if parts.preconditioned else ''}{variant}{bonus}{parts.kernel_name}"
    )
