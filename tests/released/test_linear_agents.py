"""The released agents for linear models do what the released code does, written down in NumPy.

The transcriptions are of the facts in docs/released.md, on the random numbers that the agent takes.
"""

import itertools
import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from grids import slow_but

import feelgood
from feelgood.core.policy import AGENTS
from feelgood.core.spec import Spec
from feelgood.numerics import lanes
from feelgood.numerics.keys import fold_in

SPEC = Spec(arms=3, dim=2)
D = 6
COMMON = {"eta": 1.3, "rho": 0.05, "step": 0.1, "schedule": "decay", "early": 1, "steps": 25}
COMMON |= {"likelihood": "squared"}


class Played:
    """Some rounds of data, and what an agent and a transcription need of them."""

    def __init__(self, rounds: int) -> None:
        rng = np.random.default_rng(rounds)
        self.contexts = rng.normal(size=(rounds, 2)).astype(np.float32)
        self.arms = rng.integers(0, 3, rounds)
        self.rewards = rng.normal(size=rounds).astype(np.float32)
        #: [rounds, arms, d], with θ laid out arm by arm.
        self.every = np.stack([np.kron(np.eye(3), x) for x in self.contexts]).astype(np.float64)
        self.x = self.every[np.arange(rounds), self.arms]
        self.r = self.rewards.astype(np.float64)

    def teach(self, policy: Any, state: Any) -> Any:
        update = eqx.filter_jit(policy.update)
        for x, a, r in zip(self.contexts, self.arms, self.rewards, strict=True):
            state = update(state, jnp.asarray(x), jnp.asarray(int(a)), jnp.asarray(r))
        return state

    def loss(self, theta: np.ndarray, eta: float, rho: float) -> float:
        return float(eta * ((self.x @ theta - self.r) ** 2).sum() + rho * theta @ theta)

    def slope(self, theta: np.ndarray, eta: float, rho: float) -> np.ndarray:
        return 2 * eta * self.x.T @ (self.x @ theta - self.r) + 2 * rho * theta

    def bonus(self, theta: np.ndarray, lam: float, smooth: float | None) -> tuple[float, Any]:
        """λ Σ φ(max) and its gradient, with a cap of 0.5."""
        scores = self.every @ theta
        best, g = scores.argmax(axis=1), scores.max(axis=1)
        if smooth is None:
            value, weight = np.minimum(g, 0.5), (g < 0.5) * 1.0
        else:
            value = 0.5 - np.logaddexp(0.0, smooth * (0.5 - g)) / smooth
            weight = 1.0 / (1.0 + np.exp(-smooth * (0.5 - g)))
        chosen = self.every[np.arange(len(g)), best]
        return lam * value.sum(), lam * weight @ chosen


def started(name: str, settings: dict[str, Any], data: Played) -> tuple[Any, Any]:
    policy = AGENTS[name].build({**COMMON, **settings})
    state = policy.reserve(policy.init(jax.random.key(3), SPEC), len(data.r) + 1)
    return policy, data.teach(policy, state)


def flat(theta: Any) -> np.ndarray:
    """θ as the transcriptions have it: arm after arm."""
    return np.asarray(theta, np.float64).T.reshape(-1)


def normals(key: Any, steps: int) -> np.ndarray:
    """The normals of a round, laid out as θ is."""
    drawn = np.asarray(lanes.normal(fold_in(key, 0), steps * D), np.float64)
    return np.stack([flat(z.reshape(2, 3)) for z in drawn.reshape(steps, D)])


# ---- MALA -----------------------------------------------------------------------------------

BONUSES = {"malats": (0.0, None), "fgmalats": (0.4, None), "sfgmalats": (0.4, 10.0)}


@pytest.mark.parametrize(
    ("name", "rounds"),
    slow_but([("malats", 4), ("fgmalats", 4)], itertools.product(BONUSES, (4, 40))),
)
def test_mala_as_released(name: str, rounds: int) -> None:
    lam, smooth = BONUSES[name]
    more = {} if lam == 0.0 else {"lam": lam, "lam_schedule": "constant", "b": 0.5}
    data, beta = Played(rounds), 0.7
    policy, state = started(
        f"released-{name}", {"beta": beta, "warmup_steps": 5, "steps": 25, **more}, data
    )
    key = jax.random.key(8)
    z, u = normals(key, 20), np.asarray(lanes.uniform(fold_in(key, 1), 20), np.float64)
    h, eta, rho = 0.1 / (rounds + 1), 1.3, 0.05
    theta, moves = flat(state.chain.theta), 0
    for _ in range(5):
        theta = theta - h * (data.slope(theta, eta, rho) - data.bonus(theta, lam, smooth)[1])
    value = data.loss(theta, eta, rho) - data.bonus(theta, lam, smooth)[0]
    slope = data.slope(theta, eta, rho) - data.bonus(theta, lam, smooth)[1]
    for k in range(20):
        proposal = theta - h * slope + math.sqrt(2 * h / beta) * z[k]
        of_state, pull = data.bonus(theta, lam, smooth)
        new, there = data.loss(proposal, eta, rho) - of_state, data.slope(proposal, eta, rho)
        slope = slope - pull  # the gradient that is kept gains the bonus' once more
        back = -(((theta - proposal) - h * there) ** 2).sum() / (4 * h)
        forth = -(((proposal - theta) - h * slope) ** 2).sum() / (4 * h)
        if u[k] < math.exp(min(0.0, value - new + back - forth)):
            theta, value, slope, moves = proposal, new, there, moves + 1
    drawn = eqx.filter_jit(policy.draw)(key, state)
    assert 0 < moves < 20, "both branches are met"
    np.testing.assert_allclose(flat(drawn.chain.theta), theta, rtol=2e-4, atol=2e-5)


@pytest.mark.slow
def test_the_released_ratio_accepts_nothing_in_the_appendix() -> None:
    """At 1/β = d ln T: 20 steps of descent, and then the chain stands still."""
    beta = 1.0 / (20 * math.log(10_000))
    settings = {**COMMON, "eta": 1.0, "rho": 0.01, "warmup_steps": 20, "beta": beta}
    (result,) = feelgood.run(
        *("released-linear-20", ["released-malats"]),
        rounds=500,
        seeds=5,
        settings={"released-malats": settings},
    )
    late = result.health["acceptance"][:, result.curve_rounds > 100]
    assert late.max() < 0.02


# ---- SVRG -----------------------------------------------------------------------------------


def test_svrg_as_released() -> None:
    """Three rounds one after the other: the counter of the snapshots runs across them."""
    beta, eta, rho = 5.0, 1.3, 0.05
    data = Played(50)
    policy, state = started("released-svrglmcts", {"beta": beta, "batch": 64}, data)
    theta, snapshot, full, count = flat(state.chain.theta), np.zeros(D), np.zeros(D), 0
    for turn in range(3):
        n, key = len(data.r), jax.random.key(turn)
        z, h = normals(key, 25), 0.1 / (n + 1)
        for k in range(25):
            if count == 0:
                snapshot, full = theta, data.slope(theta, eta, rho)
            # Fewer rounds than a batch: the batch is all of them, and its mean 1/n of the sum.
            mean = 2 * eta * data.x.T @ (data.x @ (theta - snapshot)) / n
            theta = theta - h * (full + mean) + math.sqrt(2 * h / beta) * z[k]
            count = (count + 1) % 10
        state = policy.draw(key, state)
        np.testing.assert_allclose(flat(state.chain.theta), theta, rtol=2e-4, atol=2e-5)
        more = Played(51 + turn)
        x, a, r = more.contexts[-1], int(more.arms[-1]), more.rewards[-1]
        state = policy.update(
            policy.reserve(state, n + 2), jnp.asarray(x), jnp.asarray(a), jnp.asarray(r)
        )
        data.every = np.concatenate([data.every, np.kron(np.eye(3), x)[None].astype(np.float64)])
        data.x = np.concatenate([data.x, data.every[-1][a][None]])
        data.r = np.append(data.r, float(r))


def test_a_chain_whose_square_overflows_is_lost_and_plays_arm_0() -> None:
    data = Played(10)
    policy, state = started("released-svrglmcts", {"beta": 1.0}, data)
    far = state.chain._replace(theta=jnp.full((2, 3), 1e19), snapshot=jnp.full((2, 3), 1e19))
    drawn = policy.draw(jax.random.key(0), type(state)(**{**vars(state), "chain": far}))
    assert not np.isfinite(np.asarray(drawn.chain.theta)).any()
    assert int(policy.choose(None, drawn, jnp.ones(2))) == 0
    assert bool(policy.report(drawn).finite)
    honest = AGENTS["released-svrglmcts"].build({**COMMON, "lost": "diverged"})
    assert int(honest.choose(None, drawn, jnp.ones(2))) == 3
    assert not bool(honest.report(drawn).finite)


# ---- underdamped ----------------------------------------------------------------------------


def test_ulmc_as_released() -> None:
    data, eta, rho, h, gamma = Played(30), 1.3, 0.05, 0.01, 0.4
    policy, state = started(
        "released-ulmcts", {"schedule": "constant", "step": h, "gamma": gamma, "beta": 9.0}, data
    )
    key = jax.random.key(2)
    z, theta, v = normals(key, 25), flat(state.chain.theta), np.zeros(D)

    def force(q: np.ndarray) -> np.ndarray:
        return eta * data.x.T @ (data.x @ q - data.r) / 30 + q / rho**2

    for k in range(25):
        v = v - 0.5 * h * force(theta)
        theta = theta + 0.5 * h * v
        v = (1 - gamma * h) * v - h * force(theta) + math.sqrt(2 * h) * z[k]
        theta = theta + 0.5 * h * v
    drawn = policy.draw(key, state)
    np.testing.assert_allclose(flat(drawn.chain.theta), theta, rtol=2e-4, atol=2e-5)
    np.testing.assert_allclose(flat(drawn.chain.velocity), v, rtol=2e-4, atol=2e-5)


# ---- all of them ----------------------------------------------------------------------------

SWITCHES = {
    "malats": {"ratio": "right", "bonus_at": "proposal"},
    "fgmalats": {"ratio": "right", "bonus_at": "proposal"},
    "sfgmalats": {"ratio": "right", "bonus_at": "proposal"},
    "svrglmcts": {"scaling": "right", "snapshots": "rounds"},
    "ulmcts": {"force": "right", "thermostat": "right", "integrator": "right"},
}


@pytest.mark.parametrize("name", slow_but(["malats"], SWITCHES))
def test_with_all_switches_off_it_is_the_right_agent(name: str) -> None:
    """Two draws on the same data and the same random numbers; and any switch changes them."""
    data, own = Played(10), {"beta": 2.0, "steps": 12, "step": 0.5}
    bonus = {"lam": 0.4, "lam_schedule": "constant", "b": 0.5}
    own |= bonus if "fg" in name else {"batch": 4} if "svrg" in name else {}
    off = {**SWITCHES[name], "waits": False, "lost": "diverged"}

    def drawn(agent: str, settings: dict[str, Any]) -> np.ndarray:
        policy, state = started(agent, {**own, **settings}, data)
        draw = eqx.filter_jit(policy.draw)
        return np.asarray(draw(jax.random.key(6), draw(jax.random.key(5), state)).chain.theta)

    right = drawn(name, {})
    np.testing.assert_allclose(drawn(f"released-{name}", off), right, rtol=1e-5, atol=1e-6)
    for switch in SWITCHES[name]:
        if switch == "bonus_at" and name == "malats":
            continue  # it has none
        on = {key: value for key, value in off.items() if key != switch}
        assert np.abs(drawn(f"released-{name}", on) - right).max() > 1e-4, switch


def test_no_step_before_the_first_observation() -> None:
    policy = AGENTS["released-malats"].build(COMMON)
    state = policy.init(jax.random.key(0), SPEC)
    np.testing.assert_array_equal(
        policy.draw(jax.random.key(1), state).chain.theta, state.chain.theta
    )


def test_they_are_marked_and_listed_on_request_only() -> None:
    named = [name for name in AGENTS.names(more=True) if name.startswith("released-")]
    assert set(named) & set(AGENTS.names()) == set()
    assert list(AGENTS.by_family(named)) == ["Released code"]


# ---- tabular ε-greedy, and one arm ----------------------------------------------------------


def test_tabular_eps_greedy_as_released() -> None:
    """First plays in random order; then ε/√(t − arms), with ties at random."""
    policy = AGENTS["released-epsgreedy-tabular"].build({"epsilon": 0.6})
    spec, nothing = Spec(arms=4, dim=2), jnp.zeros(2)
    state = policy.init(jax.random.key(0), spec)
    np.testing.assert_allclose(policy.pmf(state, nothing), [0.25] * 4)
    for arm in (2, 0, 1):
        state = policy.update(state, nothing, jnp.asarray(arm), jnp.asarray(1.0 * (arm < 2)))
    np.testing.assert_allclose(policy.pmf(state, nothing), [0, 0, 0, 1])
    state = policy.update(state, nothing, jnp.asarray(3), jnp.asarray(0.5))
    for t in range(5, 9):  # round t, counted from 1, with four arms: ε/√(t − 4)
        rate = 0.6 / math.sqrt(t - 4)
        want = np.full(4, rate / 4) + (1 - rate) * np.array([0.5, 0.5, 0, 0])
        np.testing.assert_allclose(policy.pmf(state, nothing), want, rtol=1e-5)
        keys = jax.random.split(jax.random.key(t), 4000)
        arms = eqx.filter_jit(eqx.filter_vmap(policy.choose, in_axes=(0, None, None)))(
            keys, state, nothing
        )
        share = np.bincount(np.asarray(arms), minlength=4) / 4000
        # 16 shares in all; 6 standard errors of each: below 1e-7.
        assert (np.abs(share - want) < 6 * np.sqrt(want * (1 - want) / 4000) + 1e-9).all()
        state = policy.update(state, nothing, jnp.asarray(3), jnp.asarray(0.5))


@pytest.mark.slow
def test_one_arm_is_what_the_published_wheel_is() -> None:
    """5,000 rounds of one outer arm: (1 − δ²) · ¾ · 0.9 + δ² · 0.05 per round, as published."""
    wheel = {"mu1": 0.15, "mu2": 0.1, "mu3": 1.0}
    (result,) = feelgood.run(
        *("wheel-0.5", ["released-one-arm"]), rounds=5000, seeds=10, settings={"testbed": wheel}
    )
    expected = 5000 * (0.75 * 0.75 * 0.9 + 0.25 * 0.05)
    error = 0.9 * math.sqrt(5000 * 0.5625 * 0.4375 / 10)
    assert abs(result.final_regret.mean() - expected) < 5 * error
    assert abs(expected - 2581.0) < 20


@pytest.mark.slow
@pytest.mark.parametrize(
    ("testbed", "agent", "published", "spread"),
    [
        ("released-linear-40", "released-epsgreedy-tabular", 31_170.6, 2764.1),
        ("released-linear-40", "released-svrglmcts", 19_236.8, 15_560.8),
        ("released-linear-20", "released-malats", 61.5, 32.9),
    ],
)
def test_published_numbers(testbed: str, agent: str, published: float, spread: float) -> None:
    """On the ten instances: within 4 standard errors of the published mean of ten runs."""
    value = 1.0 if agent == "released-malats" else 1e-3
    dim = int(testbed.rpartition("-")[2])
    settings: dict[str, Any] = {"epsilon": 0.01}
    if "greedy" not in agent:
        settings = {**COMMON, "eta": 1.0, "rho": 0.01}
        settings["beta"] = 1.0 / (value * dim * math.log(10_000))
    if agent == "released-malats":
        settings["warmup_steps"] = 20
    (result,) = feelgood.run(testbed, [agent], rounds=10_000, seeds=40, settings={agent: settings})
    own = result.final_regret.std(ddof=1) / math.sqrt(40)
    error = math.hypot(own, spread / math.sqrt(10))
    assert abs(result.final_regret.mean() - published) < 4 * error
