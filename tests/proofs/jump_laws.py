"""Three fixed arms under a bonus: modes far from each other or near, whose masses are known.

The values of the arms are three independent parameters, each with a normal posterior N(m, s²). With
Λ = Σλ_s, the bonus is Λ max_a v_a, and P(a is the largest) ∝ ∫ e^(Λv) φ_a(v) Π_{j≠a} Φ_j(v) dv.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from proofs import levels
from proofs.levels import Check
from proofs.targets import Problem, agent, learned, run_chains, starting_at
from scipy import stats
from scipy.special import logsumexp

from feelgood import Spec
from feelgood.agents.thompson import Thompson

NOISE, CHAINS, ROUNDS = 1.0, 4096, 5


class Case(NamedTuple):
    """How often each arm was played, what it paid on average, and λ. Each mode has mass."""

    plays: tuple[int, int, int]
    paid: tuple[float, float, float]
    lam: float


CASES = {
    "far": Case((4, 9, 120), (-1.0, 0.58, 1.78), lam=0.2),
    "near": Case((1, 4, 60), (0.0, 0.0, 0.9), lam=0.05),
}


def three_fixed_arms(case: Case) -> Problem:
    """All plays of the first arm, then those of the second and the third."""
    arms = np.repeat(np.arange(3), case.plays).astype(np.int32)
    contexts = np.broadcast_to(np.eye(3, dtype=np.float32), (len(arms), 3, 3))
    rewards = np.array(case.paid, np.float32)[arms]
    return Problem(Spec(arms=3, dim=3, shared=True), contexts, arms, rewards)


def told_agent(name: str, lam: float) -> Thompson:
    """Whose law without a bonus is the posterior with prior N(0, I)."""
    values = {"beta": 1.0, "eta": 0.5 / NOISE**2, "rho": 0.5, "steps": 10, "lam": lam}
    return agent(name, **values)


def arm_law(case: Case) -> np.ndarray:
    """The probability that each arm is the largest, by a fine sum in logarithms."""
    plays = np.array(case.plays, np.float64)
    deviation = np.sqrt(1.0 / (1.0 + plays))
    mean = deviation**2 * plays * np.array(case.paid)
    total = case.lam * plays.sum()
    low, high = (mean - 12 * deviation).min(), (mean + total * deviation**2 + 12 * deviation).max()
    v = np.linspace(low, high, 400_001)[:, None]
    below = stats.norm.logcdf(v, mean, deviation)
    others = below.sum(axis=1, keepdims=True) - below
    logs = logsumexp(total * v + stats.norm.logpdf(v, mean, deviation) + others, axis=0)
    return np.exp(logs - logsumexp(logs))


def jump_checks(name: str, which: str = "far", starts: Sequence[int] = (0, 1, 2)) -> list[Check]:
    """From a start in a mode, all three have their masses after some rounds."""
    case = CASES[which]
    policy, data, law = told_agent(name, case.lam), three_fixed_arms(case), arm_law(case)
    state = learned(policy, data, CHAINS)
    checks = []
    for arm in starts:
        start = np.zeros((CHAINS, 3))
        start[:, arm] = 3.0
        label = f"{name}, {which} modes, from that of arm {arm}"
        ends = run_chains(policy, starting_at(state, start), levels.key_for(label), ROUNDS)
        counts = np.bincount(ends.theta.argmax(axis=1), minlength=3)
        p_value = stats.chisquare(counts, CHAINS * law).pvalue
        checks.append(Check(f"{label}: {counts}, expected {CHAINS * law}", p_value=p_value))
    return checks
