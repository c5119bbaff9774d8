"""The presets have what the paper's text states; the lines of the text are in docs/presets.md."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from feelgood.core.lookup import PRESETS, preset_settings
from feelgood.core.policy import AGENTS
from feelgood.core.spec import Spec
from feelgood.numerics import lanes

SPEC = Spec(arms=2, dim=14)


def paper(agent: str, testbed: str, spec: Spec = SPEC, rounds: int = 10_000) -> dict[str, Any]:
    return preset_settings("paper", agent, testbed, spec, rounds)


def temperature(agent: str, testbed: str) -> float:
    """The value of 1/β = value · d · ln T."""
    return 1.0 / (paper(agent, testbed)["beta"] * SPEC.dim * math.log(10_000))


#: Copied from the appendix' tables of the neural experiments by hand: 1/β of LMCTS and of the two
#: with a bonus, their λ and b; ν, reg, λ and b of (S)FG-NeuralTS; reg of NeuralUCB; ε. A number
#: that the text does not give is None.
TEXT = {
    "adult": ((1e-5, 1e-5, 0.1, 10), (1e-6, 0.01, 1, 1), 0.001, 0.01),
    "covertype": ((1e-6, 1e-5, 0.05, 10), (0.01, 0.001, 1, 1), 0.001, 0.4),
    "magic": ((1e-3, 1e-3, 0.05, 10), (1e-5, None, 1, 1), 0.001, 0.1),
    "mushroom": ((1e-5, 1e-5, 0.05, 10), (1e-5, 1e-5, 1, 1), 1e-5, 0.1),
    "shuttle": ((1e-4, 1e-4, 0.05, 10), (1e-6, 0.01, 1, 1), 1e-4, 0.01),
    "mnist": ((1e-5, 1e-5, 0.05, 10), (1e-5, 1e-5, 0.05, 10), 1e-5, 0.01),
    "financial": ((1e-3, 1e-3, 0.1, 1), (1e-6, 0.01, 0.01, 1), 1e-4, 0.1),
    "jester": ((1e-3, 1e-3, 0.1, 1), (1e-6, 0.01, 1, 1), 1e-4, 0.1),
    "restaurant": ((1e-4, 1e-4, 0.01, 1), (1e-5, 0.01, 0.01, 1), 0.01, 0.01),
    "cifar10": ((1e-6, 1e-6, 0.01, 1), (1e-5, 0.01, 0.01, 1), 0.01, 0.01),
}


@pytest.mark.parametrize("testbed", TEXT)
def test_networks_have_the_numbers_of_the_text(testbed: str) -> None:
    (plain, with_bonus, lam, b), (nu, reg, ts_lam, ts_b), ucb_reg, epsilon = TEXT[testbed]
    assert temperature("neural-lmcts", testbed) == pytest.approx(plain)
    for agent in ("neural-fglmcts", "neural-sfglmcts"):
        assert temperature(agent, testbed) == pytest.approx(with_bonus)
        chosen = paper(agent, testbed)
        assert (chosen["lam"], chosen["b"], chosen["s"]) == (lam, b, 10)
    for agent in ("fg-neural-ts", "sfg-neural-ts"):
        chosen = paper(agent, testbed)
        assert (chosen["lam"], chosen["b"], chosen["s"]) == (ts_lam, ts_b, 10)
        assert chosen["nu"] == nu and reg in (chosen["reg"], None)
    assert paper("neural-ucb", testbed)["reg"] == ucb_reg
    assert paper("neural-eps-greedy", testbed)["epsilon"] == epsilon


def test_networks_as_the_text_describes_them() -> None:
    """ε decays; NeuralUCB explores by the last layer, NeuralTS by all weights; f is one mean."""
    for testbed in TEXT:
        assert paper("neural-eps-greedy", testbed)["decay"] == "sqrt"
        assert paper("neural-ucb", testbed)["design"] == "last-layer"
        assert paper("neural-ts", testbed)["design"] == "diagonal"
        for agent in ("neural-fglmcts", "neural-sfglmcts", "fg-neural-ts", "sfg-neural-ts"):
            assert paper(agent, testbed)["bonus_on"] == "mean"
        losses = {
            agent: paper(agent, testbed)["likelihood"] for agent in ("neural-ts", "neural-ucb")
        }
        bernoulli = ["neural-ucb"] if testbed == "covertype" else []
        assert [agent for agent, loss in losses.items() if loss == "bernoulli"] == bernoulli


@pytest.mark.parametrize("testbed", ["linear-20", "logistic-20"])
def test_linear_agents_have_the_numbers_of_the_text(testbed: str) -> None:
    spec = Spec(arms=5, dim=4)
    hot = 10.0 if testbed == "logistic-20" else 1.0
    for agent in ("lints", "lmcts", "plmcts", "svrglmcts", "malats"):
        assert paper(agent, testbed, spec)["eta"] == 1.0
    for agent in ("fglmcts", "sfglmcts", "pfglmcts", "psfglmcts", "fgmalats", "sfgmalats"):
        assert paper(agent, testbed, spec)["eta"] == hot
    assert paper("linucb", testbed, spec)["alpha"] == 0.1
    for agent in ("epsgreedy", "epsgreedy-tabular"):
        chosen = paper(agent, testbed, spec)
        assert (chosen["epsilon"], chosen["decay"]) == (0.01, "none")


def test_a_small_reg_leaves_the_last_layer_right_in_float32() -> None:
    """U = 10⁻⁵ I + Σ φ φᵀ of 4,000 nearly equal φ: a factor of U itself has lost the small part."""
    rng = np.random.default_rng(0)
    rows = 1.0 + 0.05 * rng.normal(size=(4000, 20)) @ np.diag(np.arange(20) < 3)
    rows = rows.astype(np.float32)
    root, sums = jnp.eye(20) / np.sqrt(1e-5), 1e-5 * jnp.eye(20)
    root, _ = jax.lax.scan(lambda b, x: (lanes.inverse_root_update(b, x), None), root, rows)
    sums, _ = jax.lax.scan(lambda u, x: (u + jnp.outer(x, x), None), sums, rows)
    assert not np.isfinite(np.asarray(jnp.linalg.cholesky(sums))).all()
    exact = 1e-5 * np.eye(20) + rows.astype(np.float64).T @ rows.astype(np.float64)
    new = np.abs(rng.normal(size=(8, 20)))
    want = np.sqrt(np.einsum("ai,ij,aj->a", new, np.linalg.inv(exact), new))
    got = np.linalg.norm(np.asarray(root) @ new.T.astype(np.float32), axis=0)
    np.testing.assert_allclose(got, want, rtol=0.02)


def test_only_our_own_default_lets_the_weight_fall() -> None:
    """1/√s out of the box, wherever there is a bonus; every preset has a weight that stays."""
    linear, network = Spec(arms=5, dim=4), Spec(arms=2, dim=14, rewards="bernoulli")
    for agent in ("fglmcts", "psfghmcts", "jfgmalats", "neural-fglmcts", "fg-neural-ts"):
        settings = AGENTS[agent].settings
        assert (settings["lam"].default, settings["lam_schedule"].default) == (1.0, "sqrt")
        for preset in PRESETS:
            spec, testbed = (network, "adult") if "neural" in agent else (linear, "linear-20")
            chosen = preset_settings(preset, agent, testbed, spec, 10_000)
            # The released code has no other Langevin network than the plain one.
            if not (agent == "neural-fglmcts" and preset.startswith("released")):
                assert "lam" in chosen and chosen["lam_schedule"] == "constant", (agent, preset)
    assert preset_settings("constant-bonus", "fgmalats", "linear-20", linear, 9)["lam"] == 0.1
    for without in ("lints", "lmcts", "blackjax:hmc"):
        assert preset_settings("constant-bonus", without, "linear-20", linear, 9) == {}
