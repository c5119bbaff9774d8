"""Check of the law of scores that an agent says: arms are chosen as it has it."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jaxtyping import Float, Int

from feelgood.api.agent_case import CHECKED_SEEDS, AgentCase
from feelgood.api.findings import Findings
from feelgood.core.errors import FeelgoodError
from feelgood.core.policy import Policy
from feelgood.core.score_law import ScoreLaw
from feelgood.core.spec import Spec
from feelgood.numerics import generator
from feelgood.numerics.noise import round_noise
from feelgood.stats.choice_probabilities import choice_probabilities
from feelgood.stats.counts_of_law import p_of_counts

#: Rounds that are played from one state, and how many of them if each has a law of its own.
SCORES_ROUNDS, _OWN_LAWS = 5_000, 100
#: How often a sound agent fails by chance, and classes that places in a law are counted in.
SCORES_LEVEL, _PLACES = 1e-6, 4


def check_scores(case: AgentCase, problem: str) -> Findings:
    """`Hints.scores` is a law of scores, and arms are the largest of such scores.

    Exact binomial tests at `SCORES_LEVEL`, before any data and after some rounds.
    """
    spec, policy = case.problems[problem].spec, case.policy
    scores = policy.hints(spec).scores
    if scores is None:
        return
    contexts = case.block(problem, CHECKED_SEEDS).contexts[-1]
    played = case.played(problem, CHECKED_SEEDS[:1], live=True).state
    rounds = _rounds(policy, spec, scores)
    for state in (policy.init(generator.key(0), spec), played):
        arms, laws = jax.tree.map(np.asarray, rounds(state, contexts[..., 0]))
        try:
            p = _p_of_arms(arms, laws, spec.arms)
        except FeelgoodError as error:
            yield f"scores returns no law: {error}"
            return
        if p < SCORES_LEVEL:
            yield "scores returns a law that has other arms as the largest than are chosen."
            return
    if policy.hints(spec).layout == "lanes":
        chains = case.played(problem, CHECKED_SEEDS).state
        mean, one = scores(chains, contexts).mean, scores(played, contexts[..., 0]).mean
        if mean.shape[1:] != (len(CHECKED_SEEDS),) or not np.allclose(mean[..., 0], one, atol=1e-3):
            yield "scores of many chains differs from that of one of them."


def _rounds(policy: Policy, spec: Spec, scores: Callable[[Any, Any], ScoreLaw]) -> Any:
    """From a state and a context to arms that are played, and the law of each decision."""
    needs, keys = policy.needs(spec), jax.random.split(generator.key(1), SCORES_ROUNDS)

    def one(key: Any, state: Any, context: Any) -> Any:
        noise = round_noise(key, needs)
        drawn = policy.draw(noise.draw, state)
        return policy.choose(noise.choose, drawn, context), scores(drawn, context)

    return jax.jit(lambda state, context: jax.vmap(lambda key: one(key, state, context))(keys))


def _p_of_arms(arms: Int[np.ndarray, " rounds"], laws: ScoreLaw, count: int) -> float:
    """The p-value of the arms, where all rounds have one law, and where each has its own."""

    def pmf(i: int) -> Float[np.ndarray, " arms"]:
        return choice_probabilities(jax.tree.map(lambda leaf: leaf[i], laws)).pmf

    if all(np.all(leaf == leaf[:1]) for leaf in jax.tree.leaves(laws)):
        return p_of_counts(np.bincount(arms, minlength=count), pmf(0))
    places = np.random.default_rng(0).random(_OWN_LAWS)
    for i, arm in enumerate(arms[:_OWN_LAWS]):
        law = np.append(pmf(i), 0.0)
        places[i] = law[:arm].sum() + places[i] * law[min(arm, count)]
    counted = np.bincount(np.minimum(_PLACES * places, _PLACES - 1).astype(int), minlength=_PLACES)
    return p_of_counts(counted, np.full(_PLACES, 1.0 / _PLACES))
