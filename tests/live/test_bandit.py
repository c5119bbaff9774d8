"""What a live bandit does with decisions, rewards, arms and masks."""

import threading
from typing import Any

import numpy as np
import pytest

import feelgood
from feelgood import FeelgoodError

RNG = np.random.default_rng(20)
X = RNG.normal(size=(200, 2)).astype(np.float32)
TOLD = {"noise": 0.5, "prior": 1.0}


def bandit(agent: str = "lints", arms: Any = ("a", "b", "c"), **more: Any) -> feelgood.Bandit:
    return feelgood.Bandit(agent, arms=list(arms), **{"features": 2, "seed": 1, **more})


def ridge(rows: list[tuple[np.ndarray, float, float]], ratio: float) -> tuple[Any, Any]:
    """V and b of one arm, in double precision, of rows (x, r, weight)."""
    v, b = ratio * np.eye(2), np.zeros(2)
    for x, r, w in rows:
        v += w * np.outer(x, x)
        b += w * r * np.asarray(x, float)
    return v, b


def learned(live: feelgood.Bandit) -> tuple[np.ndarray, np.ndarray]:
    """V and b of every arm, as the agent has them."""
    system = np.asarray(live._state.player.carried().state.ridge.system, np.float64)
    lower, white = np.moveaxis(system[:-1], 2, 0), system[-1].T
    return lower @ np.swapaxes(lower, 1, 2), np.einsum("kij,kj->ki", lower, white)


def test_rewards_may_come_late_in_any_order_and_together() -> None:
    """The posterior depends on what was rewarded, and not on when."""
    live = bandit(settings=TOLD)
    made = live.act(X[:40])
    assert [d.id for d in made] == list(range(40)) and live.version == 0
    paid = {d.id: float(RNG.normal()) for d in made}
    order = RNG.permutation(40).tolist()
    for own in order[:10]:
        live.update(own, paid[own])
    live.update(order[10:30], [paid[own] for own in order[10:30]])
    assert live.version == 30 and set(live.waiting) == set(order[30:])
    v, b = learned(live)
    for slot, name in enumerate("abc"):
        rows = [(X[own], paid[own], 1.0) for own in order[:30] if made[own].arm == name]
        want_v, want_b = ridge(rows, 0.25)
        np.testing.assert_allclose(v[slot], want_v, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(b[slot], want_b, rtol=1e-4, atol=1e-4)


def test_a_weight_counts_so_many_times() -> None:
    live = bandit(settings=TOLD)
    live.learn(X[0], "b", 1.5, 3.0)
    live.learn(X[1:3], ["b", "b"], [0.5, -1.0], [0.25, 1.0])
    want = ridge([(X[0], 1.5, 3.0), (X[1], 0.5, 0.25), (X[2], -1.0, 1.0)], 0.25)
    v, b = learned(live)
    np.testing.assert_allclose(v[1], want[0], rtol=1e-5)
    np.testing.assert_allclose(b[1], want[1], rtol=1e-5)


@pytest.mark.parametrize("settings", [TOLD, {}])
def test_forgetting_is_exponential_and_leaves_the_prior(settings: dict[str, float]) -> None:
    """V = ρI + Σ keepⁿ x xᵀ, with n rewards since; after many equal rounds it stays where it is."""
    keep = 0.9
    live = bandit(settings=settings, forget=keep)
    for x in X:
        live.learn(x, "a", float(x[0]))
    ages = keep ** np.arange(len(X))[::-1]
    state = live._state.player.carried().state
    ratio = 0.25 if settings else float(state.learned.scales.noise / state.learned.scales.prior)
    rows = [(x, float(x[0]), w) for x, w in zip(X, ages, strict=True)]
    want = ridge(rows, ratio)
    v, b = learned(live)
    np.testing.assert_allclose(v[0], want[0], rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(b[0], want[1], rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(v[1], ratio * np.eye(2), rtol=1e-3)
    if not settings:
        assert float(state.learned.scales.rewards) == pytest.approx(ages.sum(), rel=1e-4)


def test_a_mask_leaves_the_best_of_the_rest() -> None:
    live, all_of_them = bandit(seed=5), bandit(seed=5)
    for x in X[:60]:
        free = all_of_them.act(x)
        assert live.act(x, mask=[True, True, True]).arm == free.arm
    for x in X[:40]:
        masked = live.act(x, mask=["a", "c"])
        assert masked.arm in ("a", "c") and masked.arms == ("a", "c")
        live.update(masked.id, 1.0 if masked.arm == "a" else 0.0)
    assert live.act(X[0], mask=[False, True, False]).arm == "b"


def test_a_removed_arm_is_played_no_more_and_a_new_one_starts_at_the_prior() -> None:
    live = bandit(settings=TOLD)
    first = [live.act(x) for x in X[:30]]
    for decision in first[:20]:
        live.update(decision.id, 1.0)
    late = (
        next(d for d in first[20:] if d.arm == "b")
        if any(d.arm == "b" for d in first[20:])
        else first[20]
    )
    live.remove_arm("b")
    assert live.arms == ("a", "c")
    assert {live.act(x).arm for x in X[:50]} <= {"a", "c"}
    live.update(late.id, 1.0)
    before = learned(live)
    live.add_arm("d")
    v, b = learned(live)
    assert live.arms == ("a", "c", "d")
    np.testing.assert_allclose(v[:3], before[0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(v[3], 0.25 * np.eye(2), rtol=1e-5)
    np.testing.assert_allclose(b[3], 0.0)
    live.learn(X[0], "d", 2.0)
    assert "d" in {live.act(x).arm for x in X[:100]}


def test_an_ensemble_plays_by_the_shares_of_its_members() -> None:
    live = bandit(members=8)
    for x in X[:30]:
        decision = live.act(x)
        shares = decision.pmf
        assert shares is not None and shares.sum() == pytest.approx(1.0)
        assert np.allclose(shares * 8, np.round(shares * 8))
        assert decision.probability == shares["abc".index(decision.arm)] > 0
        live.update(decision.id, float(x[0]))
    expected = live.pmf(X[0])
    assert np.array_equal(expected, live.act(X[0]).pmf)


@pytest.mark.parametrize(
    ("agent", "more"),
    [
        ("lints", {"members": 8}),
        ("lints", {"settings": TOLD}),
        pytest.param("lints", {}, marks=pytest.mark.slow),
        pytest.param("vits", {}, marks=pytest.mark.slow),
        pytest.param("ensemble++", {}, marks=pytest.mark.slow),
    ],
    ids=["ensemble of chains", "normal", "Student", "vits", "ensemble++"],
)
def test_actions_follow_their_probabilities(agent: str, more: dict[str, Any]) -> None:
    """Σ (1{a} − p_a) has mean 0 and variance Σ p_a(1 − p_a); 5.5 deviations: 4e-8 per arm."""
    live = bandit(agent, **more)
    live.learn(X[:20], ["abc"[i % 3] for i in range(20)], X[:20, 0])
    made = live.act(np.tile(X, (10, 1)))
    laws = np.array([d.pmf for d in made])
    played = np.array([[d.arm == name for name in "abc"] for d in made])
    spread = np.sqrt((laws * (1.0 - laws)).sum(axis=0))
    assert np.all(spread > 5.0)
    assert np.all(np.abs((played - laws).sum(axis=0)) < 5.5 * spread)


def test_no_probability_is_invented() -> None:
    decision = bandit("lmcts").act(X[0])
    assert decision.probability is None and decision.pmf is None


def test_a_mask_leaves_arms_out_of_the_law_of_scores() -> None:
    live = bandit()
    live.learn(X[:20], ["abc"[i % 3] for i in range(20)], X[:20, 0])
    whole, some = live.pmf(X[0]), live.act(X[0], mask=["a", "c"])
    assert whole is not None and whole.sum() == pytest.approx(1.0, abs=1e-10)
    assert some.pmf is not None and len(some.pmf) == 2
    assert some.pmf.sum() == pytest.approx(1.0, abs=1e-10) and np.all(some.pmf > whole[[0, 2]])


def test_a_snapshot_decides_and_does_not_learn() -> None:
    live = bandit()
    for x in X[:20]:
        live.update(live.act(x).id, float(x[0]))
    copy = live.snapshot()
    apart = [copy.act(x).arm for x in X] != [live.act(x).arm for x in X]
    assert apart and copy.version == live.version == 20
    with pytest.raises(FeelgoodError, match="a snapshot does not learn"):
        copy.learn(X[0], "a", 1.0)


def test_decisions_expire_by_age_by_id_and_by_number() -> None:
    live = bandit(pending=10)
    made = [live.act(x).id for x in X[:15]]
    assert list(live.waiting) == made[5:]
    assert live.expire(made[5:7]) == 2 and live.expire(older_than=0.0) == 8
    for own in (made[0], made[5], made[14]):
        with pytest.raises(FeelgoodError, match="has expired"):
            live.update(own, 1.0)
    assert live.version == 0


def test_many_threads_share_a_bandit() -> None:
    live = bandit()
    failures: list[BaseException] = []

    def work() -> None:
        try:
            for x in X[:50]:
                live.update(live.act(x).id, 1.0)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures and live.version == 200 and not live.waiting


@pytest.mark.slow
@pytest.mark.parametrize("agent", ["lints", "squarecb"])
def test_inverse_weights_of_logged_probabilities_are_unbiased(agent: str) -> None:
    """A known policy by 10⁴ logs of 3 decisions each, of a bandit that learned a little before.

    The mean over the logs is within 5 standard errors of the policy's value: 6e-7.
    """
    live = bandit(agent, seed=8)
    live.learn(X[:9], ["abc"[i % 3] for i in range(9)], X[:9, 0])
    logging, rng = live.snapshot(), np.random.default_rng(2)
    contexts = np.array([[1.0, 0.0], [0.0, 1.0]])
    policy, means = np.array([[0.2, 0.5, 0.3], [0.1, 0.1, 0.8]]), rng.random((2, 3))
    at = rng.integers(0, 2, (10_000, 3))
    made = logging.act(contexts[at.reshape(-1)])
    arms = np.array(["abc".index(d.arm) for d in made]).reshape(at.shape)
    chances = np.array([d.probability for d in made]).reshape(at.shape)
    rewards = means[at, arms] + 0.1 * rng.normal(size=at.shape)
    logs = (policy[at, arms] / chances * rewards).mean(axis=1)
    value = (policy * means).sum(axis=1)[at].mean()
    assert chances.min() > 0.0 and chances.min() < 0.3 < chances.max()
    spread = logs.std(ddof=1) / np.sqrt(len(logs))
    assert abs(logs.mean() - value) < 5.0 * spread
    wrong = (policy[at, arms] * 3.0 * rewards).mean()  # as if all arms had been played alike
    assert abs(wrong - value) > 5.0 * spread
