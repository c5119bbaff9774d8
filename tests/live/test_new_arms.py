"""A bandit that gains an arm is one that had it from the start and never played it."""

import subprocess
import sys
from typing import Any

import grids
import jax
import numpy as np
import pytest

import feelgood
from feelgood import FeelgoodError

RNG = np.random.default_rng(8)
X, SHARED = RNG.normal(size=(30, 2)), RNG.normal(size=(30, 3, 2))
R = RNG.integers(0, 2, 30).astype(float)
TOLD: dict[str, Any] = {"noise": 0.5, "prior": 2.0}
#: Agents whose every block is a prior's where an arm was never played, and their settings.
CASES = [
    ("lints", "squared", True),
    ("lints", "squared", False),
    ("linucb", "squared", False),
    ("plmcts", "squared", True),
    ("fghmcts", "squared", True),
    ("plmcts", "bernoulli", True),
    ("laplace-ts", "bernoulli", True),
    ("laplace-ts", "bernoulli", False),
    ("ensemble++", "squared", True),
]


def sure(bandit: feelgood.Bandit) -> dict[str, np.ndarray]:
    """What is known for sure: all of the state but draws, chains and their diagnostics."""
    state = bandit._state.player.carried().state
    leaves, _ = jax.tree_util.tree_flatten_with_path(state)
    named = {jax.tree_util.keystr(path): np.asarray(leaf) for path, leaf in leaves}
    random = (".theta", ".chain", ".info", ".step", ".start", ".seen", ".z", "anchor")
    out = {name: leaf for name, leaf in named.items() if not any(r in name for r in random)}
    for name, leaf in out.items():
        if name.endswith("root"):  # any B with the same BᵀB will do
            out[name] = np.einsum("kib,kjb->ijb", leaf, leaf)
        if name.endswith("lower"):  # of the other arms it is that of an earlier estimate
            out[name] = leaf[:, :, -1]
    return out


@pytest.mark.parametrize(
    ("agent", "rewards", "told"),
    grids.slow_but([], CASES),
)
def test_a_new_arm_has_the_prior(agent: str, rewards: str, told: bool) -> None:
    settings = TOLD if told else {}
    if rewards == "bernoulli" and told:
        settings = {"prior": 2.0} if agent.startswith("laplace") else TOLD
    both = [
        feelgood.Bandit(agent, arms, 2, rewards=rewards, settings=settings)
        for arms in (["a", "b"], ["a", "b", "c"])
    ]
    for bandit in both:
        bandit.learn(X, ["ab"[i % 2] for i in range(30)], R)
    both[0].add_arm("c")
    one, other = (sure(bandit) for bandit in both)
    assert one.keys() == other.keys()
    if told or agent == "linucb":
        for name, leaf in one.items():
            np.testing.assert_allclose(leaf, other[name], rtol=2e-3, atol=1e-4, err_msg=name)
    elif rewards == "squared":
        state = both[0]._state.player.carried().state
        ratio = float(state.learned.scales.noise / state.learned.scales.prior)
        new = np.asarray(state.ridge.factor)[:, :, 2]
        np.testing.assert_allclose(new, np.sqrt(ratio) * np.eye(2), rtol=1e-4)
    else:
        state = both[0]._state.player.carried().state
        precision = 1.0 / float(state.learned.scales.prior)
        new = np.asarray(state.fit.lower)[:, :, 2]
        np.testing.assert_allclose(new, np.sqrt(precision) * np.eye(2), rtol=1e-4)
    for x in X:
        both[0].update(both[0].act(x).id, 0.0)
    both[0].learn(X, ["c"] * 30, np.ones(30))
    assert "c" in {both[0].act(x).arm for x in X}


@pytest.mark.slow
@pytest.mark.parametrize("agent", ["lmcts", "fglmcts", "epsgreedy-tabular", "neural-lmcts"])
def test_arms_with_features_of_their_own_come_and_go(agent: str) -> None:
    """Decisions that wait, and what is remembered of past rounds, have the new shape too."""
    bandit = feelgood.Bandit(agent, ["a", "b", "c"], arm_features=2)
    waiting = [bandit.act(x) for x in SHARED[:10]]
    for decision in waiting[:5]:
        bandit.update(decision.id, 1.0)
    bandit.add_arm("d")
    bandit.remove_arm("a")
    for decision in waiting[5:]:
        bandit.update(decision.id, 0.0)
    for x in SHARED:
        decision = bandit.act(x)
        assert decision.arm in ("b", "c", "d")
        bandit.update(decision.id, 1.0)
    assert bandit.version == 40


@pytest.mark.slow
def test_a_network_for_all_arms_cannot_gain_one() -> None:
    bandit = feelgood.Bandit("neural-lmcts", ["a", "b"], 2)
    with pytest.raises(FeelgoodError, match="cannot gain an arm"):
        bandit.add_arm("c")
    assert bandit.arms == ("a", "b") and bandit.act(X[0]).arm in bandit.arms


@pytest.mark.slow
@pytest.mark.parametrize("agent", ["lmcts", "fglmcts", "neural-lmcts", "laplace-ts"])
def test_histories_double_and_programs_are_few(agent: str) -> None:
    """2,100 rewards need room for 512, 1024, 2048 and 4096: as many sets of programs."""
    bandit = feelgood.Bandit(agent, ["a", "b"], 2, rewards="bernoulli")
    player, rooms = bandit._state.player, set()
    for i in range(2_100):
        x = X[i % 30]
        bandit.update(bandit.act(x).id, float(x[0] > 0))
        rooms.add(player.room)
    assert rooms <= {512, 1024, 2048, 4096} and np.all(
        np.isfinite(bandit._state.saved().arrays["state/0"])
    )
    assert player.grows and player.room == 4096
    assert np.mean([bandit.act(x).arm == "a" for x in X]) >= 0.0


@pytest.mark.slow
def test_a_process_may_end_while_the_next_size_is_compiled() -> None:
    code = (
        "import feelgood\nb = feelgood.Bandit('lmcts', 2, 2, rewards='bernoulli')\n"
        "for _ in range(300): b.learn([1.0, 0.5], 0, 1.0)\nassert b._state._ahead is not None"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert done.returncode == 0 and not done.stderr
