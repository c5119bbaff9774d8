"""Check of the action probabilities that an agent says: they are those of its choices."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from feelgood.api.agent_case import CHECKED_SEEDS, AgentCase
from feelgood.api.findings import Findings, kind_of
from feelgood.numerics import generator
from feelgood.numerics.noise import round_noise
from feelgood.stats.counts_of_law import p_of_counts

#: Rounds that are played from one state, and how often a sound agent fails by chance.
PMF_ROUNDS, PMF_LEVEL = 5_000, 1e-6


def check_pmf(case: AgentCase, problem: str) -> Findings:
    """`Hints.pmf` is a law, that of the arms, before any data and after some rounds.

    The arms of `PMF_ROUNDS` rounds from one state meet it in exact binomial tests at `PMF_LEVEL`.
    """
    spec, policy = case.problems[problem].spec, case.policy
    pmf = policy.hints(spec).pmf
    if pmf is None:
        return
    contexts = case.block(problem, CHECKED_SEEDS).contexts[-1]
    played = case.played(problem, CHECKED_SEEDS[:1], live=True).state
    for state in (policy.init(generator.key(0), spec), played):
        law = pmf(state, contexts[..., 0])
        if law.shape != (spec.arms,):
            yield f"pmf returns {kind_of(law)}: it must be float32[{spec.arms}]."
            return
        chances = np.asarray(law, np.float64)
        if not np.all(chances >= 0.0) or abs(chances.sum() - 1.0) > 1e-5:
            yield f"pmf returns {chances.round(3).tolist()}, which is no law: its sum must be 1."
            return
        p = p_of_counts(_counts(case, problem, state, contexts[..., 0]), chances)
        if p < PMF_LEVEL:
            yield f"pmf returns {chances.round(3).tolist()}, but arms are chosen otherwise."
            return
    if policy.hints(spec).layout == "lanes":
        many = pmf(case.played(problem, CHECKED_SEEDS).state, contexts)
        if many.shape[1:] != (len(CHECKED_SEEDS),) or not np.allclose(many[..., 0], law, atol=1e-3):
            yield "pmf of many chains differs from that of one of them."


def _counts(case: AgentCase, problem: str, state: Any, context: Any) -> np.ndarray:
    """How often each arm is played from one state; the last number is of arms that do not exist."""
    spec, policy = case.problems[problem].spec, case.policy
    needs = policy.needs(spec)

    def one(key: Any) -> Any:
        noise = round_noise(key, needs)
        return policy.choose(noise.choose, policy.draw(noise.draw, state), context)

    arms = jax.jit(jax.vmap(one))(jax.random.split(generator.key(1), PMF_ROUNDS))
    return np.asarray(jnp.bincount(arms, length=spec.arms))
