"""What one chain of a result cost: gradient evaluations and seconds."""

import dataclasses
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from feelgood.core.errors import FeelgoodError
from feelgood.engine.results import AgentResult
from feelgood.report.ranking import agent_results


@dataclasses.dataclass(frozen=True)
class ChainCost:
    """What one chain cost: gradient evaluations (None where not recorded) and seconds.

    Chains of a run share one compiled program: `seconds` is a result's share of its run time,
    divided by its chains.
    """

    gradients: float | None
    seconds: float


def chain_cost(result: AgentResult | Any) -> ChainCost:
    """Cost of one chain."""
    (result,) = agent_results([result])
    recorded = "gradients" in result.health
    gradients = float(gradient_curve(result)[-1]) if recorded else None
    return ChainCost(gradients, result.run_s / len(result.seeds))


def gradient_curve(result: AgentResult | Any) -> Float[np.ndarray, " points"]:
    """Gradient evaluations of one chain up to each recorded round, mean over living chains."""
    (result,) = agent_results([result])
    if "gradients" not in result.health:
        raise FeelgoodError(
            f"{result.agent} records no gradient evaluations: compare it by seconds."
        )
    a_round = result.health["gradients"][result.diverged_at < 0]
    if len(a_round) == 0:
        return np.full(len(result.curve_rounds), np.nan)
    widths: Int[np.ndarray, " points"] = np.diff(result.curve_rounds, prepend=0)
    return np.cumsum(a_round.mean(axis=0) * widths)
