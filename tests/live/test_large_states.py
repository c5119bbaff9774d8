"""States whose leaves are large: histories and networks, which programs change in place."""

from typing import Any

import numpy as np
import pytest

import feelgood
from feelgood.live import state_words

RNG = np.random.default_rng(9)
X, R = RNG.normal(size=(80, 2)), RNG.integers(0, 2, 80).astype(float)


def made(agent: str, **more: Any) -> feelgood.Bandit:
    return feelgood.Bandit(agent, ["a", "b", "c"], 2, rewards="bernoulli", seed=3, **more)


def played(bandit: feelgood.Bandit) -> list[Any]:
    """Arms and laws of rounds of every kind: rewards at once, late, together, and none at all."""
    out: list[Any] = []
    for i in range(0, 60, 6):
        one = bandit.act(X[i])
        bandit.update(one.id, R[i])
        many = bandit.act(X[i + 1 : i + 4])
        bandit.update([d.id for d in many[:2]], R[i : i + 2])
        bandit.learn(X[i + 4 : i + 6], ["a", "b"], R[i : i + 2])
        out += [one, *many]
    return [(d.arm, None if d.pmf is None else d.pmf.tolist()) for d in out]


@pytest.mark.slow
@pytest.mark.parametrize(
    "agent",
    ["lints", "laplace-ts", "lmcts", "fglmcts", "svrglmcts", "greedy", "neural-lmcts", "neural-ts"],
)
def test_a_large_state_plays_as_a_small_one(agent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where every leaf is taken for a large one, arms, laws, copies and files are the same."""
    small = made(agent)
    monkeypatch.setattr(state_words, "MOST_WORDS", 8)
    large = made(agent)
    assert len(large._state.player.large) > len(small._state.player.large)
    a, b = played(small), played(large)
    assert [arm for arm, _ in a] == [arm for arm, _ in b]
    for (_, one), (_, two) in zip(a, b, strict=True):
        np.testing.assert_allclose(one or [], two or [], rtol=1e-4, atol=1e-6)
    copy = large.snapshot()
    before = copy._state.saved().arrays
    played(large)
    after = copy._state.saved().arrays
    assert all(np.array_equal(before[name], after[name]) for name in before)


def test_a_failure_that_takes_the_state_with_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_words, "MOST_WORDS", 8)
    bandit = made("lints")
    real = bandit._state.player.programs.learn

    def failing(*arguments: Any) -> Any:
        real(*arguments)
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(bandit._state.player.programs, "learn", failing)
        with pytest.raises(MemoryError):
            bandit.learn(X[0], "a", 1.0)
    with pytest.raises(feelgood.FeelgoodError, match="load the bandit again"):
        bandit.learn(X[0], "a", 1.0)
