"""Results that no run gave: for tests of what is done with results."""

import numpy as np

from feelgood.engine.results import AgentResult


def result(
    agent: str,
    values: object,
    *,
    seeds: tuple[int, ...] | None = None,
    testbed: str = "linear-20",
    rounds: int = 4,
    gradients: float | None = 26.0,
) -> AgentResult:
    """A result with these final regrets; NaN is a chain that diverged in round 3."""
    final = np.asarray(values, np.float64)
    n = len(final)
    grid = np.array([1, 2, 4])
    health = {} if gradients is None else {"gradients": np.full((n, 3), gradients)}
    return AgentResult(
        agent=agent,
        testbed=testbed,
        settings={},
        testbed_settings={},
        rounds=rounds,
        seeds=seeds or tuple(range(n)),
        final_regret=final,
        simple_regret=final / 2,
        best_arm_rate=np.full(n, 0.5),
        arm_counts=np.zeros((n, 2), np.int64),
        curve_rounds=grid,
        curve=np.outer(final, grid / 4.0),
        health=health,
        ess=np.full(n, np.nan),
        diverged_at=np.where(np.isfinite(final), -1, 3),
        compile_s=1.0,
        run_s=2.0,
    )
