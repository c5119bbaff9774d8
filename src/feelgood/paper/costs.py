"""Roughly how long the paper's tables take: measured once, scaled to the machine at hand."""

import time
from collections.abc import Sequence

import numpy as np

from feelgood.agents import grammar
from feelgood.paper.published_rows import PublishedRow

#: Core-seconds of ten chains over 10,000 rounds of linear-20 on the reference machine, by the
#: agent's parts: preconditioned, variant, bonus, kernel. Smoothed bonuses cost as plain ones,
#: underdamped dynamics as overdamped.
CORE_SECONDS = {
    "lmc": 1.0,
    "plmc": 1.5,
    "svrglmc": 8.4,
    "mala": 1.1,
    "hmc": 3.6,
    "phmc": 10.0,
    "fglmc": 27.0,
    "pfglmc": 25.0,
    "fgmala": 37.0,
    "fghmc": 60.0,
    "pfghmc": 60.0,
}
CLOSED_FORM = 0.2
#: What the published number of rounds of other testbeds costs, in that of linear-20.
FACTORS = {"linear-20": 1.0, "linear-40": 2.0, "logistic": 8.0, "wheel": 0.4}
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


def estimated_seconds(rows: Sequence[PublishedRow]) -> float | None:
    """Core-seconds of these rows on the reference machine; None where one was never measured."""
    total = 0.0
    runs = {(r.testbed, r.agent, r.preset, tuple(sorted(r.settings.items()))): r for r in rows}
    for row in runs.values():
        cost = _cost(row)
        if cost is None:
            return None
        total += cost * row.published.seeds / 10
    return total + COMPILING * len({(r.testbed.split("-")[0], r.agent) for r in rows})


def _cost(row: PublishedRow) -> float | None:
    testbed, agent = (name.removeprefix("released-") for name in (row.testbed, row.agent))
    factor = FACTORS.get(testbed, FACTORS.get(testbed.split("-")[0]))
    if factor is None:
        return None
    parts = grammar.parts_of(agent)
    if parts is None:
        return CLOSED_FORM * factor
    bonus = "fg" if parts.bonus_name and row.settings.get("lam") != 0 else ""
    variant = "" if parts.variant == "u" else parts.variant
    name = f"{'p' if parts.preconditioned else ''}{variant}{bonus}{parts.kernel_name}"
    return CORE_SECONDS[name] * factor
