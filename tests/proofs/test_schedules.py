"""Weights of the bonus that follow a schedule: the sums, the law of two fixed arms, every agent.

Round s keeps the weight λ_s that held in it. With the same arms in every round the bonus is then
Λ max_a f, with Λ = Σ_s λ_s over the rounds so far, and the law of a linear model has a closed form.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from grids import slow_but
from proofs import levels
from proofs.energies import ROUNDING
from proofs.laws import bonus_agent, quadrature, quadrature_checks, two_dimensional
from proofs.levels import require
from proofs.targets import (
    Formula,
    Problem,
    agent,
    flat,
    formula_of,
    learned,
    quick_jit,
    run_chains,
    starting_at,
    unflat,
)
from scipy import stats

from feelgood import AGENTS, Spec
from feelgood.agents.thompson import Thompson
from feelgood.targets.bonus import FeelGood
from feelgood.targets.energy import LinearModelTarget

#: The values u and v of two arms are two parameters: arm 0 shows (1, 0), arm 1 shows (0, 1).
ROUNDS, NOISE, STRENGTH = 12, 1.0, 0.6
SCHEDULES: dict[str, dict[str, float]] = {
    "constant": {"lam": STRENGTH},
    "sqrt": {"lam": STRENGTH},
    "prior-mass": {"prior_mass": 0.05, "horizon": 40.0},
}


def two_fixed_arms() -> Problem:
    """Arm 0 was played nine times and paid 0.2, arm 1 three times and paid 0.5, on average."""
    contexts = np.broadcast_to(np.eye(2, dtype=np.float32), (ROUNDS, 2, 2))
    arms = np.array([0, 1, 0, 0] * 3, np.int32)
    rewards = np.where(arms == 0, 0.2, 0.5).astype(np.float32)
    return Problem(Spec(arms=2, dim=2, shared=True), contexts, arms, rewards)


def posterior_agent(name: str, schedule: str) -> Thompson:
    """Whose law without a bonus is the posterior with prior N(0, I) and this noise."""
    values = {"beta": 1.0, "eta": 0.5 / NOISE**2, "rho": 0.5, "step": 1.0, "steps": 60}
    return agent(name, **values, **SCHEDULES[schedule], lam_schedule=schedule, leapfrog=3)


def total_weight(schedule: str) -> float:
    """Λ after all rounds."""
    if schedule == "constant":
        return STRENGTH * ROUNDS
    if schedule == "sqrt":
        return float(sum(STRENGTH / np.sqrt(s) for s in range(1, ROUNDS + 1)))
    return ROUNDS * float(np.sqrt(2.0 * np.log(1.0 / 0.05) / 40.0))


def closed_form(schedule: str) -> float:
    """The probability that u, the value of arm 0, is the larger one.

    P(u) ∝ exp(Λm_u + Λ²s_u²/2) Φ((m_u + Λs_u² − m_v)/√(s_u² + s_v²)), and with u and v exchanged.
    """
    data, weight = two_fixed_arms(), total_weight(schedule)
    mean, variance = [], []
    for arm in range(2):
        own = data.rewards[data.arms == arm].astype(np.float64)
        variance.append(1.0 / (1.0 + len(own) / NOISE**2))
        mean.append(variance[-1] * np.sum(own) / NOISE**2)
    spread = np.sqrt(variance[0] + variance[1])
    parts = [
        np.exp(weight * mean[i] + weight**2 * variance[i] / 2.0)
        * stats.norm.cdf((mean[i] + weight * variance[i] - mean[1 - i]) / spread)
        for i in range(2)
    ]
    return float(parts[0] / sum(parts))


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_with_fixed_arms_the_bonus_is_the_total_weight_times_the_best(schedule: str) -> None:
    data = two_fixed_arms()
    policy = posterior_agent("fglmcts", schedule)
    points = levels.generator_for(f"fixed arms {schedule}").normal(size=(32, 2))
    state = learned(policy, data, len(points))
    target = LinearModelTarget.of(policy.energy(state.spec), state.data, unflat(points, data.spec))
    theta, no_luck = unflat(points, data.spec), jnp.zeros((0, len(points)))
    value, gradient, _ = target.evaluate(theta, state.chain.memo, no_luck)
    weight, best = total_weight(schedule), points.max(axis=1)
    pull = weight * (points == best[:, None])
    plain = flat(target.data_gradient(theta))
    size = ROUNDING * weight * (1.0 + np.abs(points).max())
    steep = ROUNDING * (weight + np.abs(plain).max())
    require(
        [
            levels.close("value", value, -weight * best, size),
            levels.close("gradient", plain - flat(gradient), pull, steep),
        ]
    )


@pytest.mark.parametrize(
    ("name", "schedule"),
    slow_but(
        [("fgmalats", "sqrt")],
        [(name, schedule) for name in ("fgmalats", "fghmcts") for schedule in SCHEDULES],
    ),
)
def test_two_fixed_arms_have_the_law_of_the_closed_form(name: str, schedule: str) -> None:
    """By quadrature to its grid, and by the draws of chains that start in the law."""
    data, chains = two_fixed_arms(), 16_384
    policy = posterior_agent(name, schedule)
    law = quadrature(formula_of(policy, data), 1.0)
    u, v = law.centres
    share = float(np.sum(law.weights * (u[:, None] > v)))
    label = f"fixed arms {name} {schedule}"
    start = law.draw(levels.generator_for(label), chains)
    state = starting_at(learned(policy, data, chains), start)
    ends = run_chains(policy, state, levels.key_for(label), 1).theta
    stayed = np.mean(np.all(ends == start.astype(np.float32), axis=1))
    want = closed_form(schedule)
    require(
        [
            levels.close(f"{label}, quadrature", share, want, 5e-3),
            levels.close(f"{label}, share of chains that never moved", stayed, 0.0, 0.1),
            levels.share_is(f"{label}, u above v", ends[:, 0] > ends[:, 1], want),
        ]
    )
    plain = closed_form("constant") if schedule != "constant" else closed_form("sqrt")
    assert abs(plain - want) > 0.02, "another schedule has the same law: the comparison is empty"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "loss"),
    [(n, loss) for n in ("fgmalats", "fghmcts") for loss in ("squared", "bernoulli")],
)
def test_adjusted_kernels_sample_the_target_with_a_schedule(name: str, loss: str) -> None:
    data = two_dimensional(shared=False, bernoulli=loss == "bernoulli")
    policy = bonus_agent(name, data, lam=1.0, lam_schedule="sqrt")
    require(quadrature_checks(policy, data, f"schedule {name} {loss}"))


@pytest.mark.parametrize(
    "name", ["fglmcts", "neural-fgmalats", "fg-neural-ts", "sfg-neural-ts", "blackjax:hmc"]
)
def test_every_kind_of_agent_takes_the_schedules_and_the_form(name: str) -> None:
    entry = AGENTS[name]
    for schedule in SCHEDULES:
        values = {"lam": 0.2, "lam_schedule": schedule, "bonus_on": "score"}
        bonus = entry.build(values).bonus  # type: ignore[attr-defined]
        assert isinstance(bonus, FeelGood)
        assert (bonus.lam_schedule, bonus.bonus_on) == (schedule, "score")
        # Without a weight there is no bonus, unless the weight comes from elsewhere.
        weightless = entry.build({"lam": 0.0, "lam_schedule": schedule}).bonus  # type: ignore[attr-defined]
        assert (weightless is not None) == (schedule == "prior-mass")


@pytest.mark.parametrize("loss", slow_but(["squared"], ["squared", "bernoulli"]))
def test_the_bridge_to_blackjax_has_the_same_energy(loss: str) -> None:
    data = two_dimensional(shared=True, bernoulli=loss == "bernoulli")
    values = {"lam": 0.8, "b": 0.6, "lam_schedule": "sqrt", "eta": 0.7, "rho": 0.2}
    bridge = AGENTS["blackjax:hmc"].build(values)
    formula = formula_of(agent("fglmcts", **values), data)
    state = bridge.init(jax.random.key(0), data.spec)
    for t in range(data.rounds):
        context, reward = jnp.asarray(data.contexts[t]), jnp.asarray(data.rewards[t])
        state = bridge.update(state, context, jnp.asarray(data.arms[t]), reward)
    energy = bridge._energy(data.spec)  # type: ignore[attr-defined]
    points = levels.generator_for(f"bridge {loss}").normal(size=(8, 2))
    away = points[formula.corner_distance(points) > 1e-3]
    origin = unflat(away[0], data.spec)
    target = LinearModelTarget.of(energy, state.data, origin)
    evaluate = quick_jit(target.evaluate)
    found = [evaluate(unflat(p, data.spec), (), jnp.zeros((0,))) for p in away]
    rise = np.array([float(e.value) for e in found]) - float(found[0].value)
    want = formula.value(away) - formula.value(away[:1])
    size, steep = formula.size(away) + formula.size(away[:1]), formula.gradient_size(away)
    require(
        [
            levels.close("value", rise, want, ROUNDING * size),
            levels.close(
                "gradient",
                np.array([flat(e.gradient) for e in found]),
                formula.gradient(away),
                ROUNDING * steep[:, None],
            ),
        ]
    )


def test_the_weights_of_the_formula_are_those_of_the_schedule() -> None:
    """The reference of these proofs, once by hand: λ_4 = c/√4."""
    data = two_dimensional(shared=False, bernoulli=False)
    weights = Formula(data, lam=0.8, sqrt=True).weights
    assert weights[0] == 0.8 and weights[3] == 0.4 and len(weights) == data.rounds
