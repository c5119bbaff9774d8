"""The exact agents: whom they refuse, how they draw, and that other agents have their laws."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from grids import slow_but

import feelgood
from feelgood import AGENTS, TESTBEDS, FeelgoodError, Spec
from feelgood.agents.exact import _rare_arms_first
from feelgood.core.knowledge import FiniteClass, GaussianArms
from feelgood.engine.propensities import propensity
from feelgood.engine.simulation import simulate
from feelgood.numerics.noise import round_noise
from feelgood.stats.counts_of_law import p_of_counts
from feelgood.testbeds import Linear, Wheel

#: False-alarm rate of one test below.
LEVEL = 1e-6

REFUSED = (
    "agents are told no class of mean rewards there, and without one no law is exact; use a "
    "testbed such as trap-0.01 or linear-trap-80, or an agent such as lints."
)


def test_a_problem_without_knowledge_is_refused_in_one_sentence() -> None:
    with pytest.raises(FeelgoodError) as run:
        feelgood.run("linear-20", ["lints", "exact-ts"], rounds=10)
    assert str(run.value) == f"exact-ts cannot play linear-20: {REFUSED}"
    with pytest.raises(FeelgoodError) as live:
        feelgood.Bandit("exact-fgts", 3, 2)
    assert str(live.value) == f"exact-fgts cannot play in a live bandit: {REFUSED}"
    with pytest.raises(FeelgoodError) as study:
        feelgood.studies.plan_cells("linear-20", "exact-ts")
    assert str(study.value) == f"exact-ts cannot play linear-20: {REFUSED}"
    with pytest.raises(FeelgoodError) as alone:
        simulate(Linear(), AGENTS["exact-ts"].build(), rounds=10, seeds=1)
    assert str(alone.value) == f"ExactThompson cannot play Linear: {REFUSED}"
    report = feelgood.check_agent("exact-ts", testbed="linear-20")
    assert list(report) == [f"it cannot play 'linear-20': {REFUSED}"]


def test_a_smoothed_cap_is_for_finite_classes() -> None:
    with pytest.raises(FeelgoodError, match=r"s = 5\.0 needs a finite class of mean rewards"):
        feelgood.run("linear-trap-9", "exact-fgts", settings={"exact-fgts": {"b": 1.0, "s": 5.0}})
    with pytest.raises(FeelgoodError, match=r"s = 5\.0 smooths the corner of a cap, and there is"):
        AGENTS["exact-fgts"].build({"s": 5.0})


def test_without_a_weight_it_is_the_plain_agent() -> None:
    for name in ("trap-0.1", "linear-trap-9", "opposites"):
        run = feelgood.run(
            name,
            ["exact-ts", "exact-fgts"],
            rounds=300,
            seeds=5,
            settings={"exact-fgts": {"lam": 0.0}},
        )
        np.testing.assert_array_equal(run[0].curve, run[1].curve)


def test_a_far_cap_is_none() -> None:
    """Closed form and integrals draw the same arms from the same numbers, but for near ties."""
    with_cap, without = (
        simulate(
            TESTBEDS["linear-trap-9"].build(),
            AGENTS["exact-fgts"].build({"lam": 0.2, "lam_schedule": "constant"} | cap),
            rounds=300,
            seeds=range(5),
        )
        for cap in ({"b": 1e3}, {})
    )
    np.testing.assert_array_equal(with_cap.arm_counts, without.arm_counts)


def test_rare_arms_are_drawn_as_often_as_they_should() -> None:
    """Also last in the list, where a uniform number of float32 would have few digits left."""
    law = jnp.array([0.3, 0.699999, 1e-6, 0.0])
    arms = jax.jit(jax.vmap(_rare_arms_first, (0, None)))(
        jax.random.normal(jax.random.key(1), (4_000_000,)), law
    )
    counts = np.bincount(np.asarray(arms), minlength=4)
    assert counts[3] == 0 and p_of_counts(counts, np.asarray(law, float)) > LEVEL
    assert int(_rare_arms_first(jnp.asarray(0.1), jnp.full(3, jnp.nan))) == 3, "no arm of no law"


def test_its_propensities_are_exact() -> None:
    testbed = TESTBEDS["trap-0.1"].build()
    policy, spec = AGENTS["exact-fgts"].build(), testbed.spec
    state = policy.init(jax.random.key(0), spec)
    found = propensity(policy, spec, state, state, testbed.shown())  # type: ignore[attr-defined]
    assert found is not None and np.all(found.error == 0.0)
    np.testing.assert_allclose(found.pmf, [0.9, 0.1], rtol=1e-5)


# ---- units ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["finite", "normal"])
def test_the_weight_has_the_unit_of_one_over_rewards(kind: str) -> None:
    """Rewards, noise and cap times 64 and the weight divided by 64: the same law."""

    def told(unit: float) -> FiniteClass | GaussianArms:
        if kind == "finite":
            means = ((0.0, 0.25 * unit), (0.0, -0.5 * unit), (0.125 * unit, 0.0))
            return FiniteClass(means, (0.2, 0.5, 0.3), 0.5 * unit)
        return GaussianArms.alone((0.5 * unit, 0.25 * unit, unit), 0.5 * unit)

    laws = []
    for unit in (1.0, 64.0):
        known = told(unit)
        spec = Spec(arms=known.arms, dim=1, known=known)
        policy = AGENTS["exact-fgts"].build({"lam": 0.5 / unit, "b": 0.25 * unit})
        state = policy.init(jax.random.key(0), spec)
        context = jnp.ones(1)
        for arm, reward in enumerate((0.25, -0.125)):
            state = policy.update(state, context, jnp.asarray(arm), jnp.asarray(reward * unit))
        pmf = policy.hints(spec).pmf
        assert pmf is not None
        laws.append(np.asarray(pmf(state, context)))
    np.testing.assert_allclose(*laws, rtol=1e-5)


def test_the_wheels_weight_is_counted_in_its_rewards() -> None:
    """Its rewards reach 50: λ there is what λ · 50 is where they reach 1; here with 64."""
    unit = 64.0
    small = Wheel(mu1=1.2 / unit, mu2=1.0 / unit, mu3=50.0 / unit, noise=0.01 / unit)
    build = AGENTS["fgmalats"].build
    runs = [
        simulate(testbed, build({"start": "zero", **own}), rounds=60, seeds=range(2), workers=1)
        for testbed, own in (
            (Wheel(), {"lam": 0.5 / unit}),
            (small, {"lam": 0.5, "b": 1000.0 / unit}),
            (Wheel(), {"lam": 0.5}),
        )
    ]
    np.testing.assert_array_equal(runs[0].arm_counts, runs[1].arm_counts)
    assert not np.array_equal(runs[0].arm_counts, runs[2].arm_counts)


# ---- the linear worlds for everybody ----------------------------------------------------------

LINEAR = {
    "linear-trap-5": {"noise": 1.0, "prior": 1.0},
    "sceptic-0.3": {"noise": 1.0, "prior": 0.3},
    "uneven-noise-4": {"noise": 1.0, "prior": 1.0},
    "opposites": {"noise": 1.0, "prior": 1.0},
}


@pytest.mark.parametrize("testbed", slow_but(["linear-trap-5", "sceptic-0.3"], LINEAR))
@pytest.mark.parametrize("heat", [1.0, 5.0])
def test_linear_thompson_sampling_has_the_same_law(testbed: str, heat: float) -> None:
    """What agents are told is what their ordinary settings say: `lints` knows as much."""
    problem = TESTBEDS[testbed].build()
    spec = problem.spec
    told = {**LINEAR[testbed], "temperature": heat}
    lints, exact = AGENTS["lints"].build(told), AGENTS["exact-ts"].build({"temperature": heat})
    key = jax.random.key(0)
    context = problem.context(key, problem.init(key), jnp.asarray(0))
    states = [agent.init(jax.random.key(0), spec) for agent in (lints, exact)]
    update = [jax.jit(lambda *a, agent=agent: agent.update(*a)) for agent in (lints, exact)]
    rng, pmf = np.random.default_rng(5), exact.hints(spec).pmf
    assert pmf is not None
    for t in range(12):
        if t % 4 == 0:
            noise = round_noise(jax.random.key(t), lints.needs(spec))
            found = propensity(lints, spec, states[0], lints.draw(noise.draw, states[0]), context)
            assert found is not None
            np.testing.assert_allclose(pmf(states[1], context), found.pmf, atol=2e-4)
        arm, reward = jnp.asarray(rng.integers(2)), jnp.asarray(rng.normal(), jnp.float32)
        states = [up(state, context, arm, reward) for up, state in zip(update, states, strict=True)]
