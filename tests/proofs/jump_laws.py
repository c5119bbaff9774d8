"""Fixed arms under a bonus: modes far from each other or near, whose masses are known.

The values of the arms are independent, each with a normal posterior N(m, s²). With Λ = Σλ_s, the
bonus is Λ max_a v_a, and P(a is the largest) ∝ ∫ e^(Λv) φ_a(v) Π_{j≠a} Φ_j(v) dv. Arms show one
coordinate each, or as in the linear trap the first shows (1, …, 1)/√d and the second one
coordinate more. With several copies, one of which is shown in a round, the law is a product.
"""

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from proofs import levels
from proofs.levels import Check
from proofs.targets import Problem, agent, learned, quick_jit, run_chains, starting_at
from scipy import stats
from scipy.special import logsumexp

from feelgood import AGENTS, TESTBEDS, Spec
from feelgood.agents.thompson import Thompson

NOISE, CHAINS, ROUNDS = 1.0, 4096, 5


class Copy(NamedTuple):
    """How often each arm was played, and what it paid on average; d of a linear trap, or none."""

    plays: tuple[int, ...]
    paid: tuple[float, ...]
    coordinates: int = 0

    @property
    def features(self) -> np.ndarray:
        """[dim, arms], each arm of length 1."""
        d = self.coordinates
        if not d:
            return np.eye(len(self.plays))
        return np.stack([np.append(np.full(d, d**-0.5), 0.0), np.append(np.zeros(d), 1.0)], axis=1)


class Case(NamedTuple):
    """Copies of some arms, and λ. Each mode has mass."""

    lam: float
    copies: tuple[Copy, ...]


TRAP = Copy((4, 90), (-0.5, 1.4), coordinates=6)
CASES = {
    "far": Case(0.2, (Copy((4, 9, 120), (-1.0, 0.58, 1.78)),)),
    "near": Case(0.05, (Copy((1, 4, 60), (0.0, 0.0, 0.9)),)),
    "trap": Case(0.2, (TRAP,)),
    "copies": Case(0.2, (TRAP, Copy((60, 5), (0.75, -0.3), coordinates=6))),
}


def fixed_arms(case: Case) -> Problem:
    """Of every copy all plays of the first arm, then those of the next."""
    blocks = [copy.features for copy in case.copies]
    dim, arms = sum(len(block) for block in blocks), blocks[0].shape[1]
    contexts, played, rewards, start = [], [], [], 0
    for copy, block in zip(case.copies, blocks, strict=True):
        shown = np.zeros((dim, arms), np.float32)
        shown[start : start + len(block)] = block
        start += len(block)
        played.append(np.repeat(np.arange(arms), copy.plays).astype(np.int32))
        contexts.append(np.broadcast_to(shown, (len(played[-1]), dim, arms)))
        rewards.append(np.array(copy.paid, np.float32)[played[-1]])
    parts = (np.concatenate(x) for x in (contexts, played, rewards))
    return Problem(Spec(arms=arms, dim=dim, shared=True), *parts)


def told_agent(name: str, lam: float, **own: Any) -> Thompson:
    """Whose law without a bonus is the posterior with prior N(0, I), or as `own` says."""
    values = {"beta": 1.0, "eta": 0.5 / NOISE**2, "rho": 0.5, "steps": 10, "lam": lam}
    return agent(name, **values | own)


def arm_law(copy: Copy, lam: float) -> np.ndarray:
    """The probability that each arm is the largest, by a fine sum in logarithms."""
    plays = np.array(copy.plays, np.float64)
    deviation = np.sqrt(1.0 / (1.0 + plays))
    mean = deviation**2 * plays * np.array(copy.paid)
    total = lam * plays.sum()
    low, high = (mean - 12 * deviation).min(), (mean + total * deviation**2 + 12 * deviation).max()
    v = np.linspace(low, high, 400_001)[:, None]
    below = stats.norm.logcdf(v, mean, deviation)
    others = below.sum(axis=1, keepdims=True) - below
    logs = logsumexp(total * v + stats.norm.logpdf(v, mean, deviation) + others, axis=0)
    return np.exp(logs - logsumexp(logs))


def product(laws: Sequence[np.ndarray]) -> np.ndarray:
    """Of the best arms of all copies together; the last one's changes first."""
    return functools.reduce(lambda one, two: np.outer(one, two).ravel(), laws)


def best_arms(theta: np.ndarray, shown: Sequence[np.ndarray]) -> np.ndarray:
    """Which arms are the best of all copies, as one number per chain, in the order of `product`."""
    best = [(theta @ features).argmax(axis=1) for features in shown]
    return functools.reduce(lambda one, two: one * shown[0].shape[1] + two, best)


def jump_checks(name: str, which: str = "far", starts: Sequence[int] = (0, 1, 2)) -> list[Check]:
    """From a start in a mode, all modes have their masses after some rounds."""
    case = CASES[which]
    data = fixed_arms(case)
    ends = np.cumsum([sum(copy.plays) for copy in case.copies]) - 1
    shown = [data.contexts[end].astype(np.float64) for end in ends]
    law = product([arm_law(copy, case.lam) for copy in case.copies])
    return _mode_checks(
        told_agent(name, case.lam), data, shown, law, starts, f"{name}, {which} modes"
    )


def _mode_checks(
    policy: Thompson,
    data: Problem,
    shown: Sequence[np.ndarray],
    law: np.ndarray,
    starts: Sequence[int],
    what: str,
) -> list[Check]:
    """All chains start where one arm of every copy is the best by far."""
    state, checks = learned(policy, data, CHAINS), []
    for arm in starts:
        if arm >= data.spec.arms:
            continue
        start = np.tile(3.0 * sum(features[:, arm] for features in shown), (CHAINS, 1))
        label = f"{what}, from that of arm {arm}"
        ends = run_chains(policy, starting_at(state, start), levels.key_for(label), ROUNDS)
        best = best_arms(ends.theta, shown)
        counts = np.bincount(best, minlength=len(law))
        told = f"{label}: {counts}, expected {CHAINS * law}"
        if len(law) == 2:
            checks.append(levels.share_is(told, best == 0, float(law[0])))
        else:
            checks.append(Check(told, p_value=stats.chisquare(counts, CHAINS * law).pvalue))
    return checks


# ---- along one history ------------------------------------------------------------------------

#: A linear trap with a prior that is too sure, in the bad world; λ_s = 1/√s.
D, PRIOR, LENGTH = 6, 0.5, 300
FALLING = {"lam": 1.0, "lam_schedule": "sqrt"}


class Recorded(NamedTuple):
    """Rounds that `exact-fgts` played, and its probabilities before each."""

    data: Problem
    laws: np.ndarray

    def until(self, rounds: int) -> Problem:
        return self.data.taking(np.arange(rounds))


@functools.cache
def recorded_trap() -> Recorded:
    """One history, the same in every run of the tests."""
    testbed = TESTBEDS[f"linear-trap-{D}"].build({"prior": PRIOR})
    policy = AGENTS["exact-fgts"].build(FALLING)
    pmf, context = policy.hints(testbed.spec).pmf, testbed.shown()
    rng = np.random.default_rng(21)
    means = jnp.array([0.5 * D**0.5, 0.5 * D**0.5 - 0.5])
    luck = jnp.asarray(np.stack([rng.random(LENGTH), rng.normal(size=LENGTH)], axis=1), jnp.float32)

    def one(state: Any, luck: Any) -> Any:
        law = pmf(state, context)
        arm = (luck[0] >= law[0]).astype(jnp.int32)
        reward = means[arm] + NOISE * luck[1]
        return policy.update(state, context, arm, reward), (law, arm, reward)

    start = policy.init(jax.random.key(0), testbed.spec)
    _, kept = quick_jit(lambda s: jax.lax.scan(one, s, luck))(start)
    laws, arms, rewards = map(np.asarray, kept)
    contexts = np.broadcast_to(np.asarray(context), (LENGTH, *context.shape))
    return Recorded(Problem(testbed.spec, contexts, arms, rewards), laws.astype(np.float64))


def history_checks(name: str, rounds: int, starts: Sequence[int] = (0, 1)) -> list[Check]:
    """Many chains that know the first rounds of one history play as the exact agent would."""
    told = recorded_trap()
    data, law = told.until(rounds), told.laws[rounds]
    policy = told_agent(name, rho=0.5 / PRIOR**2, **FALLING)
    shown = [data.contexts[0].astype(np.float64)]
    what = f"{name}, {rounds} rounds of a linear trap"
    return _mode_checks(policy, data, shown, law, starts, what)
