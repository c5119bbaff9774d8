"""Any BlackJAX kernel as the sampler of a Thompson agent."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rounds import redraw

import feelgood
from feelgood.agents.blackjax_bridge import LISTED_KERNELS
from feelgood.core.policy import AGENTS
from feelgood.core.spec import Spec


# Quick: hmc in the next test.
@pytest.mark.slow
@pytest.mark.parametrize("kernel", LISTED_KERNELS)
def test_shown_kernels_learn(kernel: str) -> None:
    name = f"blackjax:{kernel}"
    result = feelgood.run(
        "linear-20", [name, "uniform"], rounds=150, seeds=2, settings={name: {"steps": 10}}
    )
    assert result[name].status == "ok"
    assert result[name].regret.mean < 0.6 * result["uniform"].regret.mean
    assert np.all(result[name].health["acceptance"] > 0.2)


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({}, marks=pytest.mark.slow),
        {"lam": 0.2},
        pytest.param({"likelihood": "bernoulli"}, marks=pytest.mark.slow),
    ],
    ids=["plain", "bonus", "bernoulli"],
)
def test_logistic_problems_and_the_bonus(settings: dict[str, object]) -> None:
    name = "blackjax:hmc"
    run = feelgood.run("logistic-5", [name], rounds=20, seeds=1, settings={name: settings})
    assert run[0].status == "ok"


@pytest.mark.slow
def test_nuts_draws_from_the_exact_posterior() -> None:
    """Mean and variance of 500 independent chains' last draws against the closed form.

    20 z-tests at 10⁻³/20 each (|z| < 4.06): one false alarm in a thousand for the whole test.
    """
    spec, count, chains = Spec(arms=2, dim=5), 40, 500
    policy = AGENTS["blackjax:nuts"].build({"steps": 15, "beta": 0.8, "rho": 0.5})
    state = policy.reserve(policy.init(jax.random.key(0), spec), count)
    rng = np.random.default_rng(1)
    contexts, rewards = rng.normal(size=(count, 5)), rng.normal(size=count)
    for t in range(count):
        state = policy.update(
            state,
            jnp.asarray(contexts[t], jnp.float32),
            jnp.asarray(t % 2),
            jnp.asarray(rewards[t], jnp.float32),
        )
    keys = jax.random.split(jax.random.key(2), chains)
    draws = np.asarray(jax.jit(jax.vmap(lambda key: redraw(policy, spec, key, state)[0]))(keys))
    draws = draws.reshape(chains, 5, 2)
    for arm in range(2):
        x, r = contexts[arm::2], rewards[arm::2]
        precision = x.T @ x + 0.5 * np.eye(5)
        mean, covariance = np.linalg.solve(precision, x.T @ r), np.linalg.inv(1.6 * precision)
        sample, variance = draws[:, :, arm], np.diag(covariance)
        z_mean = (sample.mean(axis=0) - mean) / np.sqrt(variance / chains)
        z_variance = (sample.var(axis=0, ddof=1) / variance - 1) / np.sqrt(2 / (chains - 1))
        assert np.abs(z_mean).max() < 4.06
        assert np.abs(z_variance).max() < 4.06


@pytest.mark.parametrize(
    ("kernel", "sentence"),
    [
        ("nutz", r"'blackjax:nutz' is not a BlackJAX kernel: did you mean 'nuts'\?"),
        ("rmh", "'blackjax:rmh' does not fit: it needs transition_generator"),
        ("elliptical_slice", "does not fit: its build_kernel needs arguments"),
        ("util", "'blackjax:util' is not a BlackJAX kernel"),
        ("", "'blackjax:' is not a BlackJAX kernel"),
    ],
)
def test_kernels_that_do_not_fit(kernel: str, sentence: str) -> None:
    with pytest.raises(feelgood.FeelgoodError, match=sentence):
        feelgood.run("linear-20", [f"blackjax:{kernel}"], rounds=10, seeds=1)
