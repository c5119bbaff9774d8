"""What agents with a network should believe and draw: comparisons that proofs and mutants share."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from proofs.levels import Check, close, generator_for, key_for, mean_is, share_is
from scipy import stats

from feelgood import AGENTS, Policy, Spec
from feelgood.agents.neural_bootstrap import NeuralBootstrap
from feelgood.agents.neural_ensemble import NeuralEnsemble
from feelgood.agents.neural_linear import NeuralLinear, Regression
from feelgood.agents.neural_members import MembersPolicy
from feelgood.agents.neural_model import NeuralModelPolicy
from feelgood.agents.neural_ts import NeuralTS
from feelgood.numerics import lanes
from feelgood.targets.network_noise import PRIOR_REWARDS, PRIOR_SHARE, NetworkNoise
from feelgood.targets.networks import Network
from feelgood.targets.replay import Replay
from feelgood.targets.scales import EM_STEPS, FIRST_NOISE
from feelgood.targets.sums import Stats

SPEC = Spec(arms=3, dim=2)
SMALL = {"layers": "5", "batch": 6, "updates": 3}
ROUNDS, DRAWS = 12, 20_000
QUANTILES = (0.02, 0.2, 0.5, 0.8, 0.98)


def some_rounds(agent: Policy, count: int = ROUNDS) -> Any:
    """A state that remembers so many rounds, with room for more."""
    rng = generator_for(f"rounds of networks, {count}")
    state = agent.reserve(agent.init(jax.random.key(0), SPEC), count + 4)
    update = program(agent.update)
    for _ in range(count):
        x = jnp.asarray(rng.normal(size=2), jnp.float32)
        arm, reward = jnp.asarray(rng.integers(3)), jnp.asarray(rng.normal(), jnp.float32)
        state = update(state, x, arm, reward)
    return state


def program(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compiled, and anew for every call: a broken library must not meet an older program."""

    @eqx.filter_jit
    def fresh(*args: Any) -> Any:
        return function(*args)

    return fresh


def sums_by_numpy(
    network: Network, theta: Any, replay: Replay, rounds: Any
) -> tuple[np.ndarray, np.ndarray, float]:
    """Σ φφᵀ, Σ rφ and Σ r² over these rounds."""
    contexts = np.asarray(replay.contexts)[rounds, : network.spec.dim]
    arms, rewards = np.asarray(replay.arms)[rounds], np.asarray(replay.rewards, np.float64)[rounds]
    hidden = jax.jit(jax.vmap(lambda x: network.features(theta, x)))(jnp.asarray(contexts))
    features = np.asarray(hidden, np.float64)[np.arange(len(arms)), arms]
    return features.T @ features, features.T @ rewards, float(rewards @ rewards)


def noise_by_numpy(gram: np.ndarray, moment: np.ndarray, squares: float, count: int) -> float:
    """σ² after the first estimate: expectation maximisation from the guess, then its prior."""
    width, signal = len(moment), squares / np.trace(gram)
    noise, prior = FIRST_NOISE * squares / count, signal
    for _ in range(EM_STEPS):
        inverse = np.linalg.inv(gram + noise / prior * np.eye(width))
        mean, trace = inverse @ moment, np.trace(inverse)
        residual = squares - 2.0 * mean @ moment + mean @ gram @ mean
        better = (residual + noise * (width - noise / prior * trace)) / count
        prior = (mean @ mean + noise * trace + signal) / (width + 1)
        noise = better
    guess = PRIOR_SHARE * squares / count
    return (count * noise + PRIOR_REWARDS * guess) / (count + PRIOR_REWARDS)


def noise_checks(batch: str) -> list[Check]:
    """The learned noise of batches, and of the whole history with batch 0, to a thousandth."""
    agent = AGENTS["neural-lmcts"].build(SMALL | {"batch": int(batch)})
    assert isinstance(agent, NeuralModelPolicy)
    state, network, key = some_rounds(agent), agent.network(SPEC), jax.random.key(5)
    replay, theta = state.replay, network.init(jax.random.key(3))
    unknown = NetworkNoise.unknown()
    renewed = program(lambda *given: agent.renewed(key, unknown, *given, SPEC))
    learned = renewed(theta, replay)
    assert learned is not None
    read = np.arange(ROUNDS)
    if agent.batch:
        read = np.asarray(lanes.randint(key, agent.updates * agent.batch, ROUNDS))
    gram, moment, squares = (
        ROUNDS / len(read) * x for x in sums_by_numpy(network, theta, replay, read)
    )
    want = noise_by_numpy(gram, moment, squares, ROUNDS)
    return [close(f"noise of a network, batch {batch}", learned.variance / want, 1.0, 1e-3)]


def some_regression(noise: float, count: int, width: int = 6) -> tuple[np.ndarray, np.ndarray]:
    """Features and rewards of a linear model."""
    rng = generator_for(f"regression, {count}")
    features = np.maximum(rng.normal(size=(count, width)), 0.0)
    return features, features @ rng.normal(size=width) + noise * rng.normal(size=count)


def regression_checks(temperature: str) -> list[Check]:
    """neural-linear draws a Student t.

    Given V, every coordinate of Lᵀ(w − V⁻¹b)/√(τ(Σr² − bᵀV⁻¹b)/n) is t with n degrees of freedom.
    """
    count, width, tau = 5, 3, float(temperature)
    features, rewards = some_regression(0.5, count, width)
    agent = AGENTS["neural-linear"].build({"layers": str(width), "temperature": tau})
    assert isinstance(agent, NeuralLinear)
    scales = agent.explorer(agent.network(SPEC)).scales
    assert scales is not None
    regression = Regression(
        stats=Stats(
            gram=jnp.asarray(features.T @ features, jnp.float32)[:, :, None],
            moment=jnp.asarray(features.T @ rewards, jnp.float32)[:, None],
        ),
        squares=jnp.asarray(np.sum(rewards**2), jnp.float32),
        scales=scales._replace(noise=jnp.asarray(0.3), prior=jnp.asarray(1.5)),
    )
    label = f"neural-linear, temperature {temperature}"
    keys = jax.random.split(key_for(label), DRAWS)
    draw = program(jax.vmap(lambda key: agent.weights(key, regression, jnp.asarray(count))))
    draws = draw(keys)
    precision = 0.2 * np.eye(width) + features.T @ features
    mean = np.linalg.solve(precision, features.T @ rewards)
    left = np.sum(rewards**2) - mean @ features.T @ rewards
    white = (np.asarray(draws, np.float64) - mean) @ np.linalg.cholesky(precision)
    white = white / np.sqrt(tau * left / count)
    return [
        share_is(f"{label}, {i} below its {q} quantile", column < stats.t.ppf(q, count), q)
        for i, column in enumerate(white.T)
        for q in QUANTILES
    ]


def width_checks(likelihood: str) -> list[Check]:
    """neural-ts: v = σ²τ φᵀ(σ²/s² I + Σ w φφᵀ)⁻¹φ, and its weight decay.

    w is 1, or μ(1 − μ) with σ = 1 for Bernoulli rewards.
    """
    told = {"noise": 0.3, "prior": 0.5, "temperature": 2.0, "likelihood": likelihood}
    agent = AGENTS["neural-ts"].build(SMALL | told)
    assert isinstance(agent, NeuralTS)
    network, rng = agent.network(SPEC), generator_for("widths of neural-ts")
    state = agent.reserve(agent.init(jax.random.key(1), SPEC), 8)
    noise = 0.09 if likelihood == "squared" else 1.0
    matrix = noise / 0.25 * np.eye(5)
    update = program(agent.update)
    seen = jax.jit(lambda x: (network.features(state.theta, x), network.scores(state.theta, x)))
    for t in range(4):
        x, arm = jnp.asarray(rng.normal(size=2), jnp.float32), t % 3
        features, scores = (np.asarray(value, np.float64) for value in seen(x))
        mean = 1.0 / (1.0 + np.exp(-scores[arm]))
        weight = 1.0 if likelihood == "squared" else mean * (1.0 - mean)
        matrix += weight * np.outer(features[arm], features[arm])
        state = update(state, x, jnp.asarray(arm), jnp.asarray(1.0))
    squares = np.einsum("ai,ij,aj->a", features, np.linalg.inv(matrix), features)
    widths = program(agent.scores)(state, x)[1] / np.sqrt(2.0 * noise * squares)
    decay = (2.0 if likelihood == "squared" else 1.0) * noise / 0.25
    return [
        close(f"widths of neural-ts, {likelihood}", widths, 1.0, 1e-4),
        close(f"decay of neural-ts, {likelihood}", agent.weight_decay(state) / decay, 1.0, 1e-5),
    ]


# ---- several networks -----------------------------------------------------------------------


def ensemble_checks(scale: str) -> list[Check]:
    """∇ Σ (g + c p − r)² of every member by automatic differentiation, and scores g + c p."""
    c = float(scale)
    agent = AGENTS["neural-ensemble"].build(SMALL | {"members": 3, "prior_scale": c})
    assert isinstance(agent, NeuralEnsemble)
    state = some_rounds(agent, 7)
    network, batch = agent.network(SPEC), state.replay.first(7)

    def loss(theta: jax.Array, fixed: jax.Array) -> jax.Array:
        def left(x: jax.Array, arm: jax.Array, reward: jax.Array) -> jax.Array:
            return (network.scores(theta, x) + c * network.scores(fixed, x))[arm] - reward

        return jnp.sum(jax.vmap(left)(batch.contexts[:, :2], batch.arms, batch.rewards) ** 2)

    want = jax.jit(jax.vmap(jax.grad(loss)))(state.theta, state.extra.own)
    got = program(agent.gradient)(state, batch, state.theta)
    label, x = f"neural-ensemble, prior_scale {scale}", jnp.asarray([0.3, -1.0])
    own = np.asarray(state.extra.own)
    checks = [
        close(f"{label}, gradient", got, want, 1e-4),
        close(f"{label}, members that share a p", len(np.unique(own[:, 0])), 3, 0.5),
    ]
    scores = jax.jit(jax.vmap(lambda theta: network.scores(theta, x)))
    both = scores(state.theta) + c * scores(state.extra.own)
    expected = program(jax.vmap(lambda k: agent.member_scores(state, k, x)))(jnp.arange(3))
    return [*checks, close(f"{label}, scores", expected, both, 1e-5)]


def bootstrap_checks(resampling: str) -> list[Check]:
    """How often rewards count for 20 members in 1,000 rounds, and that this multiplies the loss.

    Counts have mean and variance 1 and their own law. Those of two rounds and of two members have
    nothing to do with each other, and a round that is read again has the same.
    """
    values = SMALL | {"members": 20, "resampling": resampling}
    agent = AGENTS["neural-bootstrap"].build(values)
    assert isinstance(agent, NeuralBootstrap)
    state = some_rounds(agent, 5)
    resampled = program(lambda rows: agent.resampled(state, state.replay.gather(rows)))
    counts = np.asarray(resampled(jnp.arange(1000)), np.float64)
    label, centred = f"neural-bootstrap, {resampling}", counts - 1.0
    chances = {0: 0.5, 2: 0.5} if resampling == "double-or-nothing" else _poisson(5)
    checks = [
        share_is(f"{label}, counts of {k}", counts.reshape(-1) == k, chance)
        for k, chance in chances.items()
    ]
    rounds, members = centred[:, ::2] * centred[:, 1::2], centred[::2] * centred[1::2]
    checks.append(mean_is(f"{label}, of two rounds", rounds.reshape(-1), 0.0, 1.0))
    checks.append(mean_is(f"{label}, of two members", members.reshape(-1), 0.0, 1.0))
    again = resampled(jnp.asarray([17, 5, 17]))
    checks.append(close(f"{label}, read again", again, counts[:, [17, 5, 17]], 1e-6))
    return [*checks, _weighted_loss(label, agent, state)]


def _poisson(last: int) -> dict[int, float]:
    return {k: float(stats.poisson.pmf(k, 1)) for k in range(last)}


def _weighted_loss(label: str, agent: NeuralBootstrap, state: Any) -> Check:
    """The gradient of a batch is the sum of those of its rows, each counted as often."""
    plain = AGENTS["neural-bootstrap"].build(SMALL | {"members": 20, "resampling": "none"})
    assert isinstance(plain, NeuralBootstrap)

    def of_row(i: jax.Array) -> jax.Array:
        row = state.replay.gather(i[None])
        return agent.resampled(state, row) * plain.gradient(state, row, state.theta)

    one_by_one = program(jax.vmap(of_row))(jnp.arange(5)).sum(axis=0)
    whole = program(agent.gradient)(state, state.replay.first(5), state.theta)
    return close(f"{label}, gradient", whole, one_by_one, 1e-4)


def playing_checks(name: str) -> list[Check]:
    """Probabilities are shares of the members, once they have learned; steps are no longer."""
    values = SMALL | {"lr": 2.0, "members": 10, "clip": 0.5, "updates": 1, "reg": 0.0}
    agent = AGENTS[name].build(values)
    assert isinstance(agent, MembersPolicy)
    state, x = some_rounds(agent), jnp.asarray([0.4, 1.0])

    def play(state: Any) -> Any:
        after = agent.draw(None, state)
        scores = jax.vmap(lambda k: agent.member_scores(after, k, x))(jnp.arange(10))
        return agent.pmf(state, x), scores, after.theta

    law, scores, theta = program(play)(state)
    shares = np.bincount(np.argmax(scores, axis=1), minlength=3) / 10
    moved = np.linalg.norm(np.asarray(theta - state.theta), axis=1)
    return [
        close(f"{name}, probabilities", law, shares, 1e-5),
        close(f"{name}, longest step", moved.max(), 1.0, 1e-3),
    ]
