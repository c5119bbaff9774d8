"""Posteriors of plug-ins: nothing is guessed from names, and `redraw` alone is enough."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import feelgood
from feelgood import AGENTS, TESTBEDS, FeelgoodError, Policy, Spec, Testbed, setting
from feelgood.core.policy import Report
from feelgood.core.spec import Number
from feelgood.posterior import analyse, calibrate, matched_settings


class Bent(NamedTuple):
    """Parameters that are not those of a linear model, under the name that such ones have."""

    theta: Any


class Bends(Testbed):
    """Rewards sin(θ_a · x) + noise."""

    noise: Number = setting(0.5, "standard deviation of the rewards", low=0.0, high=1.0)

    @property
    def spec(self) -> Spec:
        return Spec(arms=2, dim=2)

    @property
    def rounds(self) -> int:
        return 50

    def init(self, key: Any) -> Bent:
        return Bent(jax.random.normal(key, (2, 2)))

    def context(self, key: Any, state: Bent, t: Any) -> Any:
        return jax.random.normal(key, (2,))

    def mean_rewards(self, state: Bent, context: Any, t: Any) -> Any:
        return jnp.sin(context @ state.theta)

    def rewards(self, key: Any, state: Bent, means: Any) -> Any:
        return means + self.noise * jax.random.normal(key)


class Straight(Bends):
    """The same without the sine, and it says so; its state is a dictionary."""

    def init(self, key: Any) -> Any:
        return {"weights": jax.random.normal(key, (2, 2)), "other": jnp.zeros(3)}

    def mean_rewards(self, state: Any, context: Any, t: Any) -> Any:
        return context @ state["weights"]

    def truth(self, state: Any) -> Any:
        return state["weights"]

    def reward_noise(self) -> Any:
        return self.noise


class Turned(Straight):
    """Its parameters are not an array of the state as it is."""

    def truth(self, state: Any) -> Any:
        return 1.0 * state["weights"]


class Regression(Policy):
    """Bayesian regression as one would write it first: one chain, and `redraw` is all it adds.

    Its settings are called like those of other agents and mean something else.
    """

    eta: Number = setting(1.0, "factor of the deviation of the draws", above=0.0, high=9.0)
    rho: Number = setting(0.5, "deviation of the rewards", above=0.0, high=9.0)

    def init(self, key: Any, spec: Spec) -> Any:
        eye = jnp.broadcast_to(jnp.eye(spec.dim), (spec.arms, spec.dim, spec.dim))
        pull = jnp.zeros((spec.arms, spec.dim))
        return {"precision": eye, "pull": pull, "theta": pull}

    def draw(self, noise: Any, state: Any) -> Any:
        covariance = jnp.linalg.inv(state["precision"])
        mean = jnp.einsum("aij,aj->ai", covariance, state["pull"])
        normal = jax.random.normal(noise, mean.shape)
        root = jnp.linalg.cholesky(covariance)
        return {**state, "theta": mean + self.eta * jnp.einsum("aij,aj->ai", root, normal)}

    def choose(self, noise: Any, state: Any, context: Any) -> Any:
        return jnp.argmax(state["theta"] @ context)

    def update(self, state: Any, context: Any, arm: Any, reward: Any) -> Any:
        weight = self.rho**-2
        return {
            "theta": state["theta"],
            "precision": state["precision"].at[arm].add(weight * jnp.outer(context, context)),
            "pull": state["pull"].at[arm].add(weight * reward * context),
        }

    def report(self, state: Any) -> Report:
        return super().report(state)._replace(parameters=state["theta"].T.reshape(-1))


class Network(Regression):
    """Draws parameters, but not those of a linear model."""

    def report(self, state: Any) -> Report:
        return super().report(state)._replace(parameters=jnp.zeros(7))


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    for registry in (AGENTS, TESTBEDS):
        for name, value in vars(registry).items():
            if isinstance(value, dict):
                monkeypatch.setattr(registry, name, dict(value))
    AGENTS.register("regression")(Regression)
    AGENTS.register("network")(Network)
    TESTBEDS.register("bends")(Bends)
    TESTBEDS.register("straight")(Straight)
    TESTBEDS.register("turned")(Turned)


def test_a_nonlinear_testbed_has_no_exact_posterior_whatever_its_fields_are_called() -> None:
    with pytest.raises(FeelgoodError, match="bends is not linear with Gaussian noise"):
        feelgood.run("bends", ["lints"], rounds=20, seeds=2, posterior_every=10)
    with pytest.raises(FeelgoodError, match="bends does not say that its rewards have normal"):
        analyse(["lints"], testbed="bends", rounds=20)
    with pytest.raises(FeelgoodError, match="bends does not say that its rewards have normal"):
        calibrate("lints", "bends", rounds=20)


@pytest.mark.slow
def test_a_linear_testbed_says_so_and_is_measured() -> None:
    result = feelgood.run("straight", ["lints"], rounds=20, seeds=2, posterior_every=10)
    assert result["lints"].posterior is not None
    found = calibrate("lints", "straight", rounds=20, simulations=60, level=1e-6)
    assert found.calibrated, found.sentence
    with pytest.raises(FeelgoodError, match="`truth` of Turned is no array of its state"):
        calibrate("lints", "turned", rounds=20)


@pytest.mark.slow
def test_redraw_alone_is_enough_along_a_run_and_at_its_end() -> None:
    settings = {"regression": {"eta": [1.0, 2.0]}}
    right, wide = feelgood.run(
        "straight", ["regression"], rounds=60, seeds=3, settings=settings, posterior_every=30
    )
    assert right.posterior is not None and wide.posterior is not None
    trace, error = right.posterior.value["trace"], right.posterior.error["trace"]
    # Six variances of 200 draws of 4 numbers each; 6 errors of their mean: once in 10⁸.
    assert abs(trace.mean() - 1.0) < 6 * np.sqrt(np.mean(error**2) / 6)
    assert abs(wide.posterior.value["trace"].mean() - 4.0) < 24 * np.sqrt(np.mean(error**2) / 6)
    # No name is taken for another agent's setting: all stay as they are.
    assert matched_settings("regression", Straight(), 0.5) == {}
    (found,) = analyse(["regression"], testbed="straight", rounds=60, level=1e-6).agents
    assert list(found.comparisons) == ["posterior"]
    assert found.verdict.status == "exact", found.verdict.sentence


def test_parameters_of_another_model_are_no_posterior() -> None:
    with pytest.raises(FeelgoodError, match="'network' draws no parameters of a linear model"):
        analyse(["network"], testbed="straight", rounds=20)
    with pytest.raises(FeelgoodError, match="no agent of this run"):
        feelgood.run("straight", ["network"], rounds=20, seeds=2, posterior_every=10)
