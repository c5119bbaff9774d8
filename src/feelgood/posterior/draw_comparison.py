"""One agent's draws with given data, against the exact posterior and its own target."""

import dataclasses
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from feelgood.core.policy import Policy
from feelgood.core.testbed import Testbed
from feelgood.engine.environment import environment
from feelgood.posterior.analysis_results import AgentPosterior, PosteriorComparison
from feelgood.posterior.chains import parallel_draws, require_draws
from feelgood.posterior.laws import Law, Moments, Observed, exact_posterior, own_target
from feelgood.posterior.matched_settings import PRECISION
from feelgood.posterior.measures import measure
from feelgood.posterior.verdicts import POSTERIOR_LEVEL, judge

#: Fresh contexts on which the choice of arms is compared, and the seeds that they come from.
FRESH_CONTEXTS, FRESH_SEEDS = 200, 2**31


@dataclasses.dataclass(frozen=True)
class Sampling:
    """How draws are made.

    `chains` chains start where the agent starts, take in all data, throw `burn` draws away and
    share `draws` draws among them. `live` chains make their inner steps in every round before.
    """

    draws: int = 1_500
    chains: int = 30
    burn: int = 10
    live: bool = False


def fresh_contexts(testbed: Testbed, seed: int, count: int = FRESH_CONTEXTS) -> np.ndarray:
    """Contexts [count, *context] that no agent has seen."""
    block = environment(testbed, [(seed + FRESH_SEEDS) % 2**32], count)
    return np.asarray(block.contexts[..., 0], np.float64)


def compare(
    agent: str,
    policy: Policy,
    testbed: Testbed,
    log: Observed,
    sampling: Sampling | None = None,
    *,
    noise: float,
    precision: float = PRECISION,
    seed: int = 0,
    level: float = POSTERIOR_LEVEL,
    settings: Mapping[str, Any] | None = None,
) -> AgentPosterior:
    """One agent's draws with the data of `log`, against the exact posterior and its own target."""
    began = time.perf_counter()
    spec, how = testbed.spec, sampling or Sampling()
    require_draws(agent, policy, spec)
    sampled = parallel_draws(
        policy,
        spec,
        log,
        chains=how.chains,
        draws=-(-how.draws // how.chains),
        burn=how.burn,
        seed=seed,
        live=how.live,
    )
    laws = {"posterior": exact_posterior(Moments.of(spec, log), noise, precision)}
    own = own_target(policy, spec, log, seed)
    if own is not None and not _same(own, laws["posterior"]):
        laws["target"] = own
    contexts = fresh_contexts(testbed, seed)
    comparisons = {}
    for against, law in laws.items():
        rows = measure(sampled, law, spec, contexts, seed)
        rounding = 0.0 if law.rounding is None else float(law.rounding.max())
        verdict = judge(rows, level, rounding)
        comparisons[against] = PosteriorComparison(rows=tuple(rows), verdict=verdict)
    return AgentPosterior(
        agent=agent,
        seed=seed,
        settings=dict(settings or {}),
        plays=np.bincount(log.arms, minlength=spec.arms),
        draws=sampled,
        laws=laws,
        comparisons=comparisons,
        seconds=time.perf_counter() - began,
    )


def _same(one: Law, other: Law) -> bool:
    """Whether two laws are equal up to the rounding of float32 settings."""
    if one.draws is not None:
        return False
    scale = np.sqrt(np.diagonal(other.covariance, axis1=-2, axis2=-1))
    close = np.abs(one.mean - other.mean) < 1e-4 * scale
    return bool(close.all() and np.allclose(one.covariance, other.covariance, rtol=1e-4))
