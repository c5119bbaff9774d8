"""Agents with a network: energies, scores and regressions against plain NumPy, and the engine."""

import dataclasses
import functools
import itertools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from grids import covering, slow_but
from rounds import decide

from feelgood import AGENTS, TESTBEDS, FeelgoodError, Spec, simulate
from feelgood.agents.neural import TrainedState
from feelgood.agents.neural_design import DesignPolicy
from feelgood.agents.neural_linear import NeuralLinear
from feelgood.agents.neural_mcmc import NeuralThompson
from feelgood.agents.neural_ts import Explorer, NeuralTS
from feelgood.core.lookup import preset_settings
from feelgood.core.spec import Layout
from feelgood.engine.lifting import for_lanes
from feelgood.paper.network_presets import NETWORK_PRESETS
from feelgood.samplers.lmc import LMC
from feelgood.samplers.mala import MALA
from feelgood.targets import networks
from feelgood.targets.bonus import FeelGood, SmoothedFeelGood
from feelgood.targets.network_energy import Memory, NetworkEnergy, NetworkTarget
from feelgood.targets.networks import Network
from feelgood.targets.replay import Replay
from feelgood.testbeds import Linear

SPEC = Spec(arms=3, dim=2)
NEURAL = [name for name in AGENTS.names(more=True) if "neural" in name]
BONUSES = {
    "plain": None,
    "hard": FeelGood(lam=0.3, b=0.2, lam_schedule="constant"),
    "smooth": SmoothedFeelGood(lam=0.3, b=0.2, s=3.0, lam_schedule="constant"),
    "scheduled": FeelGood(lam=0.3, b=0.6, lam_schedule="sqrt"),
    "on scores": FeelGood(lam=0.3, b=0.6, bonus_on="score", lam_schedule="constant"),
}


def energy(bonus: FeelGood | None, likelihood: Any = "squared") -> NetworkEnergy:
    network = Network(spec=SPEC, layers=(4,))
    return NetworkEnergy(network, jnp.asarray(0.7), jnp.asarray(0.1), bonus, likelihood)


def some_rounds(count: int, network: Network) -> Replay:
    rng = np.random.default_rng(count)
    replay = Replay.empty(network).reserve(count)
    for _ in range(count):
        x = jnp.asarray(rng.normal(size=SPEC.dim), jnp.float32)
        arm, reward = rng.integers(SPEC.arms), rng.integers(2)
        replay = replay.add(network.row(x), jnp.asarray(arm), jnp.asarray(1.0 * reward))
    return replay


def by_hand(theta: jax.Array, model: NetworkEnergy, replay: Replay) -> float:
    """η Σ ℓ − Σ λ_s φ(max of the mean rewards over all arms), arm by arm."""
    total, bonus, bernoulli = 0.0, model.bonus, model.likelihood == "bernoulli"
    for i in range(int(replay.filled)):
        x, reward = replay.contexts[i, : SPEC.dim], float(replay.rewards[i])
        scores = [float(f) for f in model.network.scores(theta, x)]
        means = [1.0 / (1.0 + np.exp(-f)) for f in scores]
        played = int(replay.arms[i])
        if bernoulli:
            total -= 0.7 * np.log(means[played] if reward else 1.0 - means[played])
        else:
            total += 0.7 * (scores[played] - reward) ** 2
        if bonus is None:
            continue
        linked = bernoulli and bonus.bonus_on == "mean"
        g, b = max(means if linked else scores), float(bonus.b)
        lam = 0.3 / np.sqrt(i + 1) if bonus.lam_schedule == "sqrt" else 0.3
        if isinstance(bonus, SmoothedFeelGood):
            s = float(bonus.s)
            total -= lam * (b - np.log1p(np.exp(s * (b - g))) / s)
        else:
            total -= lam * min(b, g)
    return total


@pytest.mark.parametrize(
    ("kind", "likelihood"), covering(itertools.product(BONUSES, ("squared", "bernoulli")))
)
def test_bonus_is_the_maximum_over_all_arms(kind: str, likelihood: str) -> None:
    model = energy(BONUSES[kind], likelihood)
    replay = some_rounds(6, model.network)
    theta = model.network.init(jax.random.key(0)) * 3.0
    value, gradient = replay.total(model.data_term, theta)
    assert abs(float(value) - by_hand(theta, model, replay)) < 1e-5
    slope = jax.grad(lambda v: replay.total(model.data_term, v)[0])(theta)
    np.testing.assert_allclose(gradient, slope, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("kind", "likelihood"), covering(itertools.product(BONUSES, ("squared", "bernoulli")))
)
def test_batches_are_unbiased_exactly(kind: str, likelihood: str) -> None:
    """The mean over all 9 batches of 2 out of 3 rounds is the full value and gradient."""
    model = energy(BONUSES[kind], likelihood)
    replay = some_rounds(3, model.network)
    theta = model.network.init(jax.random.key(1))[:, None]
    full = NetworkTarget(energy=model, data=Memory(replay))
    nothing = jnp.zeros(0)

    @jax.jit
    def estimate(index: jax.Array) -> Any:
        batch = replay.gather(index)
        landscape = NetworkTarget(energy=model, data=Memory(replay), batches=batch, size=2)
        return landscape.at(jnp.asarray(0)).evaluate(theta, None, nothing)[:2]

    pairs = itertools.product(range(3), repeat=2)
    values, gradients = zip(*(estimate(jnp.asarray(pair)) for pair in pairs), strict=True)
    value, gradient, _ = full.evaluate(theta, None, nothing)
    np.testing.assert_allclose(np.mean(values), value, rtol=1e-5)
    np.testing.assert_allclose(np.mean(gradients, axis=0), gradient, rtol=1e-4, atol=1e-5)


def test_the_batches_of_a_round_are_uniform_and_those_of_a_step_follow_each_other() -> None:
    policy = AGENTS["neural-lmcts"].build({"layers": "4", "batch": 50, "updates": 40})
    assert isinstance(policy, NeuralThompson)
    replay = some_rounds(4, policy.network(SPEC))
    drawn = policy.batches(jax.random.key(3), replay, 40)
    assert drawn is not None
    index = np.argmax(
        np.all(np.asarray(drawn.contexts)[:, None] == np.asarray(replay.contexts[:4]), 2), 1
    )
    # 2,000 draws: 500 ± 19.4 each; five standard deviations, false alarms below 3e-6.
    assert np.all(np.abs(np.bincount(index, minlength=4) - 500) < 97)
    landscape = NetworkTarget(
        energy=policy.energy(SPEC, policy.coefficients(SPEC, policy.network_scales(SPEC, None))),
        data=Memory(replay),
        batches=drawn,
        size=50,
    )
    third = landscape.at(jnp.asarray(2)).batches
    assert third is not None
    np.testing.assert_array_equal(third.contexts, drawn.contexts[100:150])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("without", "with_bonus"),
    slow_but(
        [("neural-lmcts", "neural-fglmcts")],
        [("neural-lmcts", "neural-fglmcts"), ("neural-ts", "fg-neural-ts")],
    ),
)
def test_lambda_0_is_the_plain_agent_bit_for_bit(without: str, with_bonus: str) -> None:
    shared = {"layers": "6", "batch": 8, "updates": 3}
    plain = AGENTS[without].build(shared)
    zero = AGENTS[with_bonus].build(shared | {"lam": 0.0})
    some = AGENTS[with_bonus].build(shared | {"lam": 50.0, "b": 1.0})
    problem = Linear(parameters=6, arms=3)
    a, b, c = (
        simulate(problem, p, rounds=40, seeds=[0, 1], workers=1) for p in (plain, zero, some)
    )
    np.testing.assert_array_equal(a.curve, b.curve)
    np.testing.assert_array_equal(a.arm_counts, b.arm_counts)
    assert not np.array_equal(a.curve, c.curve)


@pytest.mark.parametrize(
    ("name", "batch"),
    slow_but(
        [("neural-fglmcts", 8)],
        [
            ("neural-fglmcts", 8),
            ("neural-malats", 0),
            ("neural-hmcts", 0),
            ("neural-svrglmcts", 0),
            ("neural-eps-greedy", 8),
            ("neural-ensemble", 8),
        ],
    ),
)
def test_a_wide_network_learns_as_a_narrow_one(
    name: str, batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same numbers from the same noise, but for rounding; and a state of the same form."""
    spec = Spec(arms=2, dim=260)
    own = {} if "svrg" in name else {"batch": batch}
    policy = AGENTS[name].build({"layers": "3-2", "updates": 4, "lr": 1e-3, **own})

    def learned() -> list[np.ndarray]:
        state = policy.init(jax.random.key(0), spec)
        for t in range(3):
            x = jnp.asarray(np.random.default_rng(t).normal(size=260), jnp.float32)
            state = policy.update(state, x, jnp.asarray(t % 2), jnp.asarray(1.0 * t))
        state = jax.jit(lambda s: policy.draw(jax.random.key(1), s))(state)
        parts = [
            getattr(state, part) for part in ("chain", "info", "theta") if hasattr(state, part)
        ]
        return [np.asarray(leaf) for leaf in jax.tree.leaves(parts)]

    assert Network(spec=spec, layers=(3, 2)).wide
    wide = learned()
    monkeypatch.setattr(networks, "MANY_INPUTS", 10**6)
    for got, want in zip(wide, learned(), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "name", slow_but(["neural-lmcts"], ["neural-lmcts", "neural-ulmcts", "neural-malats"])
)
def test_noise_is_the_same_ahead_and_step_by_step(name: str) -> None:
    """An accelerator draws normals where a step uses them, a processor all at the round's start."""
    values = {"batch": 0} if name == "neural-malats" else {}
    policy = AGENTS[name].build({"layers": "3-2", "updates": 6, **values})

    def drawn(spec: Spec) -> list[np.ndarray]:
        state = policy.init(jax.random.key(0), spec)
        for t in range(3):
            x = jnp.asarray([1.0 * t, 1.0])
            state = policy.update(state, x, jnp.asarray(t), jnp.asarray(1.0 * t))
        state = jax.jit(lambda s: policy.draw(jax.random.key(1), s))(state)
        return [np.asarray(leaf) for leaf in jax.tree.leaves(state.chain)]

    ahead, by_step = drawn(SPEC), drawn(dataclasses.replace(SPEC, layout=Layout(reads_all=True)))
    assert not np.array_equal(ahead[0], np.zeros_like(ahead[0]))
    for want, got in zip(ahead, by_step, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-6)


def test_a_weightless_bonus_has_the_same_energy() -> None:
    """Also where the bonus is evaluated: its weight is all that switches it off."""
    plain, weightless = energy(None), energy(FeelGood(lam=0.0, b=1.0))
    replay = some_rounds(5, plain.network)
    theta = plain.network.init(jax.random.key(2))
    for got, want in zip(
        replay.total(weightless.data_term, theta), replay.total(plain.data_term, theta), strict=True
    ):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


# ---- NeuralUCB and NeuralTS -----------------------------------------------------------------


def small_network(theta: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """f, ∇f and the hidden layer of each of 3 arms, for layers "4" and ReLU, by hand."""
    first, bias, output = theta[:24].reshape(2, 3, 4), theta[24:28], theta[28:]
    scores, gradients, hidden = [], [], []
    for a in range(3):
        z = x @ first[:, a] + bias
        h = np.maximum(z, 0.0)
        back = output * (z > 0)
        blocks = np.zeros((2, 3, 4))
        blocks[:, a] = np.outer(x, back)
        scores.append(h @ output)
        gradients.append(np.concatenate([blocks.reshape(-1), back, h]))
        hidden.append(h)
    return np.array(scores), np.array(gradients), np.array(hidden)


@pytest.mark.parametrize("design", ["diagonal", "last-layer"])
def test_ucb_and_ts_scores(design: str) -> None:
    values = {"layers": "4", "reg": 0.5, "nu": 0.2, "design": design, "batch": 4, "updates": 2}
    ucb, ts = (AGENTS[name].build(values) for name in ("neural-ucb", "neural-ts"))
    assert isinstance(ucb, DesignPolicy) and isinstance(ts, NeuralTS)
    rng = np.random.default_rng(5)
    state = ucb.reserve(ucb.init(jax.random.key(0), SPEC), 8)
    matrix = 0.5 * np.eye(32 if design == "diagonal" else 4)
    act = eqx.filter_jit(functools.partial(decide, ucb, SPEC))
    for t in range(6):
        x = rng.normal(size=2).astype(np.float32)
        arm, state = act(jax.random.fold_in(jax.random.key(1), t), state, jnp.asarray(x))
        f, g, h = small_network(np.asarray(state.theta, np.float64), x.astype(np.float64))
        if design == "diagonal":
            squares = np.sum(g**2 / np.diag(matrix), axis=1)
        else:
            squares = np.einsum("ai,ij,aj->a", h, np.linalg.inv(matrix), h)
        sigma = np.sqrt(0.5 * 0.2 * squares)
        means, widths = ucb.scores(state, jnp.asarray(x))
        np.testing.assert_allclose(means, f, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(widths, sigma, rtol=1e-4, atol=1e-6)
        assert int(arm) == int(np.argmax(f + sigma))
        key = jax.random.key(100 + t)
        draw = f + sigma * np.asarray(jax.random.normal(key, (3,)))
        squares = jnp.asarray(matrix, jnp.float32)
        squares = jnp.diag(squares) if design == "diagonal" else squares
        same = dataclasses.replace(state, extra=Explorer(squares, None))
        assert int(ts.choose(key, same, jnp.asarray(x))) == int(np.argmax(draw))
        chosen = (g if design == "diagonal" else h)[int(arm)]
        step = np.diag(chosen**2) if design == "diagonal" else np.outer(chosen, chosen)
        matrix = matrix + step
        state = ucb.update(state, jnp.asarray(x), arm, jnp.asarray(float(rng.normal())))


def test_weight_decay_and_learning_rate_of_sgd() -> None:
    """One step on the whole history, by hand."""
    policy = AGENTS["neural-eps-greedy"].build(
        {"layers": "4", "lr": 0.1, "reg": 0.6, "batch": 0, "updates": 1}
    )
    state = policy.reserve(policy.init(jax.random.key(0), SPEC), 8)
    state = TrainedState(some_rounds(5, policy.network(SPEC)), state.theta, (), SPEC)
    want = jax.grad(lambda v: by_hand_mean(v, policy.network(SPEC), state.replay))(state.theta)
    after = policy.learn(jax.random.key(1), state).theta
    expected = state.theta - 0.1 * (want + 0.6 / 6 * state.theta)
    np.testing.assert_allclose(after, expected, rtol=1e-4, atol=1e-6)


def by_hand_mean(theta: jax.Array, network: Network, replay: Replay) -> jax.Array:
    scores = jnp.stack(
        [
            network.scores(theta, x[: SPEC.dim])[a]
            for x, a in zip(replay.contexts[:5], replay.arms[:5], strict=True)
        ]
    )
    return jnp.mean((scores - replay.rewards[:5]) ** 2)


# ---- neural-linear --------------------------------------------------------------------------


def test_neural_linear_is_exact_regression_on_frozen_features() -> None:
    values = {"layers": "4", "lr": 1e-30, "reg": 0.0, "rho": 0.3, "nu": 0.2, "updates": 1}
    policy = AGENTS["neural-linear"].build(values | {"batch": 4})
    assert isinstance(policy, NeuralLinear)
    rng = np.random.default_rng(6)
    state = policy.reserve(policy.init(jax.random.key(0), SPEC), 8)
    act, update = (
        eqx.filter_jit(functools.partial(decide, policy, SPEC)),
        eqx.filter_jit(policy.update),
    )
    features, rewards = [], []
    for t in range(7):
        x = rng.normal(size=2).astype(np.float32)
        hidden = small_network(np.asarray(state.theta, np.float64), x)[2]
        key = jax.random.key(50 + t)
        arm, state = act(key, state, jnp.asarray(x))
        phi = np.array(features).reshape(-1, 4)
        precision = 0.3 * np.eye(4) + phi.T @ phi
        mean = np.linalg.solve(precision, phi.T @ np.array(rewards))
        got, root = policy.posterior(state.extra)
        np.testing.assert_allclose(got, mean, rtol=1e-3, atol=1e-5)
        np.testing.assert_allclose(root @ root.T, precision, rtol=1e-4, atol=1e-5)
        white = np.asarray(jax.random.normal(jax.random.fold_in(key, 1), (4,)))
        draw = mean + np.sqrt(0.2) * np.linalg.solve(np.linalg.cholesky(precision).T, white)
        assert int(arm) == int(np.argmax(hidden @ draw))
        reward = float(rng.normal())
        state = update(state, jnp.asarray(x), arm, jnp.asarray(reward))
        features.append(hidden[int(arm)])
        rewards.append(reward)


# ---- when and how it learns -----------------------------------------------------------------


def test_the_network_learns_every_nth_round_only() -> None:
    policy = AGENTS["neural-lmcts"].build(
        {"layers": "4", "update_every": 3, "updates": 1, "batch": 4}
    )
    state = policy.reserve(policy.init(jax.random.key(0), SPEC), 8)
    act = jax.jit(lambda k, s: decide(policy, SPEC, k, s, jnp.ones(2)))
    moved = []
    for t in range(7):
        before = state.chain.theta
        arm, state = act(jax.random.key(t), state)
        moved.append(not np.array_equal(before, state.chain.theta))
        state = policy.update(state, jnp.ones(2), arm, jnp.ones(()))
    assert moved == [False, False, False, True, False, False, True]


def test_chains_lead_and_what_is_common_is_kept_once() -> None:
    policy = AGENTS["neural-lmcts"].build({"layers": "4"})
    spec = dataclasses.replace(SPEC, layout=Layout(chains=5))
    lifted = for_lanes(policy, spec, policy.hints(spec).layout)
    state = lifted.reserve(lifted.init(jax.random.split(jax.random.key(0), 5), spec), 10)
    assert state.chain.theta.shape == (5, 32, 1)
    assert state.replay.contexts.shape == (5, 512, 4)
    assert state.replay.filled.shape == ()


def test_snapshots_of_many_chains_are_a_branch() -> None:
    """As a choice between two values every step would read the whole history."""
    policy = AGENTS["neural-svrglmcts"].build({"layers": "4", "updates": 12, "noise": 1.0})
    spec = dataclasses.replace(SPEC, layout=Layout(chains=5))
    lifted = for_lanes(policy, spec, policy.hints(spec).layout)
    keys = jax.random.split(jax.random.key(0), 5)
    state = lifted.reserve(lifted.init(keys, spec), 10)
    context = jnp.ones((2, 5))
    state = lifted.update(state, context, jnp.zeros(5, jnp.int32), jnp.arange(5.0))
    state = lifted.draw(keys, state)
    assert np.isfinite(state.chain.theta).all()
    assert state.chain.age.value.shape == ()
    # Twelve steps of ten after the round's own: two since the last one.
    assert int(state.chain.age.value) == 2


def test_step_sizes() -> None:
    """h = lr/t for Langevin kernels, lr/√(βt) for HMC and lr/√t for ULMC, t = observations + 1."""
    want = {
        "neural-lmcts": 0.2 / 9,
        "neural-malats": 0.2 / 9,
        "neural-hmcts": 0.2 / np.sqrt(4.0 * 9),
        "neural-ulmcts": 0.2 / 3.0,
    }
    for name, step in want.items():
        policy = AGENTS[name].build({"lr": 0.2, "beta": 4.0})
        assert isinstance(policy, NeuralThompson)
        law = policy.coefficients(SPEC, policy.network_scales(SPEC, None))
        np.testing.assert_allclose(policy.tuning(jnp.asarray(8), law).step, step, rtol=1e-6)
    fixed = AGENTS["neural-lmcts"].build({"lr": 0.2, "schedule": "constant", "beta": 30.0})
    assert isinstance(fixed, NeuralThompson)
    law = fixed.coefficients(SPEC, fixed.network_scales(SPEC, None))
    np.testing.assert_allclose(fixed.tuning(jnp.asarray(8), law).step, 0.2, rtol=1e-6)


# ---- names, settings, memory ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("neural-malats", {"batch": 32}, "its accept step needs the whole history, use batch = 0"),
        ("neural-fghmcts", {"batch": 1}, "its accept step needs the whole history"),
        ("neural-malats", {"updates": 5, "warmup_steps": 5}, "leaves none of the 5 inner steps"),
        ("neural-lmcts", {"layers": "100-"}, "use widths of hidden layers such as"),
        ("neural-lmcts", {"layers": "0"}, "use widths of hidden layers such as"),
        ("neural-plmcts", {}, "networks have no preconditioned form, use 'neural-lmcts'"),
        ("neural-umalats", {}, "underdamped dynamics go with lmc only"),
        ("neural-lmct", {}, "did you mean"),
    ],
)
def test_refusals(name: str, values: dict[str, Any], message: str) -> None:
    with pytest.raises(FeelgoodError, match=message):
        AGENTS[name].build(values)


def test_kernels_refuse_batches_that_are_not_theirs() -> None:
    with pytest.raises(FeelgoodError, match="whole history"):
        NeuralThompson(kernel=MALA(), batch=8)
    assert NeuralThompson(kernel=LMC(), batch=8).batch == 8


@pytest.mark.parametrize("name", NEURAL)
def test_presets_fit_their_agents(name: str) -> None:
    entry = AGENTS[name]
    for testbed in (*NETWORK_PRESETS, "digits", "linear-20"):
        values = preset_settings("paper", name, testbed, Spec(arms=2, dim=14), 10_000)
        entry.build({key: value for key, value in values.items() if key in entry.settings})
    adult = preset_settings("paper", name, "adult", Spec(arms=2, dim=14), 10_000)
    if name in ("neural-lmcts", "neural-fglmcts", "neural-svrgsfglmcts"):
        assert adult["lr"] == 0.005
        assert adult["beta"] == pytest.approx(1.0 / (1e-5 * 14 * np.log(10_000)))
        assert adult["update_every"] == 2


def test_a_network_too_large_for_memory_is_refused_before_the_run() -> None:
    policy = AGENTS["neural-lmcts"].build({"layers": "200000-200000"})
    with pytest.raises(FeelgoodError, match="one chain of this agent needs about"):
        simulate(Linear(parameters=6, arms=3), policy, rounds=10, seeds=[0])


def test_rows_not_yet_played_count_nothing() -> None:
    model = energy(BONUSES["hard"])
    replay = some_rounds(3, model.network)
    theta = model.network.init(jax.random.key(1))
    first = replay.gather(jnp.arange(3))
    for got, want in zip(
        replay.total(model.data_term, theta), model.data_term(first, theta), strict=True
    ):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_digits_are_learned() -> None:
    """Uniform play has regret 900 there; single seeds vary by about 30 around 430."""
    pytest.importorskip("sklearn")
    policy = AGENTS["neural-lmcts"].build()
    outcome = simulate(TESTBEDS["digits"].build(), policy, rounds=1000, seeds=[0, 1])
    assert outcome.final_regret.mean() < 600
