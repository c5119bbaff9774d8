"""The agent with several chains that `studies/many_chains.py` registers."""

import importlib
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from feelgood import AGENTS, Policy, Spec, simulate
from feelgood.testbeds.linear_trap import LinearTrap

SPEC = Spec(arms=2, dim=3, shared=True)
FOLDER = Path(__file__).resolve().parents[2] / "studies"


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the registry for as long as a test takes: other tests list all agents."""
    assert "lints" in AGENTS
    monkeypatch.setattr(AGENTS, "_families", dict(AGENTS._families))
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.delitem(sys.modules, "many_chains", raising=False)
    importlib.import_module("many_chains")


def agent(**own: object) -> Policy:
    told = {"noise": 1.0, "prior": 0.5, "early": 1, "steps": 3, "chains": 64}
    return AGENTS["many-fgmalats"].build({**told, **own})


@pytest.mark.slow
def test_chains_learn_the_same_and_one_of_them_plays() -> None:
    policy = agent()
    state = policy.reserve(policy.init(jax.random.key(0), SPEC), 8)
    context = jnp.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
    state = policy.update(state, context, jnp.array(1), jnp.array(0.7))
    state = policy.draw(jax.random.key(1), state)
    moments = np.asarray(state.inner.data.stats.moment)
    np.testing.assert_array_equal(moments, np.broadcast_to(moments[..., :1], moments.shape))
    theta = np.asarray(state.inner.chain.theta)[:, 0]
    assert len(np.unique(theta[0])) == 64
    scores = np.einsum("da,dc->ac", np.asarray(context), theta)
    share = float((scores[1] > scores[0]).mean())
    keys = jax.random.split(jax.random.key(2), 4000)
    arms = jax.vmap(lambda key: policy.choose(key, state, context))(keys)
    # Five errors of a share: wrong once in a million.
    assert float(arms.mean()) == pytest.approx(share, abs=5 * 0.5 / np.sqrt(4000))
    assert 0.1 < share < 0.9


def test_fresh_starts_forget_where_a_chain_was() -> None:
    """With steps as short as nothing a round's draw is its start."""
    policy = agent(starts="fresh", spread=2.0, step=1e-9)
    state = policy.reserve(policy.init(jax.random.key(0), SPEC), 8)
    state = policy.update(state, jnp.ones((3, 2)), jnp.array(0), jnp.array(1.0))
    first, second = (
        np.asarray(policy.draw(jax.random.key(i), state).inner.chain.theta) for i in (1, 2)
    )
    assert not np.allclose(first, second)
    assert np.concatenate([first, second]).std() == pytest.approx(2.0, rel=0.25)


def test_it_plays_a_linear_trap() -> None:
    outcome = simulate(LinearTrap(coordinates=4), agent(chains=3), rounds=20, seeds=[0, 1])
    assert np.isfinite(outcome.final_regret).all()
