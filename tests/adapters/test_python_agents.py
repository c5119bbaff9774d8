"""Agents outside the compiled loop meet the same rounds and get the same statistics."""

from typing import Any

import numpy as np
import pytest

import feelgood
from feelgood import FeelgoodError
from feelgood.adapters.python_agents import play


class Ridge:
    """LinUCB in NumPy: a ridge estimate per arm plus α times its standard error."""

    def __init__(self, spec: feelgood.Spec, alpha: float = 1.0, rho: float = 1.0) -> None:
        self.alpha = alpha
        self.precision = np.stack([rho * np.eye(spec.dim)] * spec.arms)
        self.sums = np.zeros((spec.arms, spec.dim))

    def choose(self, context: np.ndarray) -> int:
        cover = np.linalg.inv(self.precision)
        means = np.einsum("aij,aj,i->a", cover, self.sums, context)
        widths = np.sqrt(np.einsum("i,aij,j->a", context, cover, context))
        return int(np.argmax(means + self.alpha * widths))

    def update(self, context: np.ndarray, arm: int, reward: float) -> None:
        self.precision[arm] += np.outer(context, context)
        self.sums[arm] += reward * context


def test_linucb_in_numpy_is_linucb() -> None:
    """The same rule on the same rounds plays the same arms but for ties of rounding."""
    settings = {"linucb": {"alpha": 1.0, "rho": 1.0}}
    ours = feelgood.run("linear-20", "linucb", rounds=300, seeds=3, settings=settings)["linucb"]
    said: list[str] = []
    made = {"mine": lambda spec, seed: Ridge(spec)}
    mine = play("linear-20", made, rounds=300, seeds=3, notify=said.append)["mine"]
    np.testing.assert_array_equal(mine.curve_rounds, ours.curve_rounds)
    np.testing.assert_allclose(mine.curve, ours.curve, rtol=0.02, atol=1.0)
    np.testing.assert_allclose(mine.best_arm_rate, ours.best_arm_rate, atol=0.02)
    assert mine.arm_counts.sum() == 900
    assert "outside the compiled loop" in said[0]
    table = str(feelgood.RunResult((mine, ours)).compare("linucb"))
    assert "no difference seen" in table


def test_a_python_agent_sees_only_the_rewards_of_its_arms() -> None:
    seen: list[tuple[int, float]] = []

    class Last:
        def choose(self, context: np.ndarray) -> Any:
            return np.int64(4)

        def update(self, context: np.ndarray, arm: int, reward: float) -> None:
            context[:] = np.nan  # nobody else sees it
            seen.append((arm, reward))

    result = play("linear-20", {"last": lambda s, n: Last()}, rounds=50, seeds=[7], notify=None)
    assert {arm for arm, _ in seen} == {4}
    assert np.isfinite(result["last"].final_regret).all()


@pytest.mark.parametrize("arm", [5, -1, 0.5, None, "red"])
def test_an_arm_that_does_not_exist_gets_one_sentence(arm: Any) -> None:
    class Odd:
        def choose(self, context: np.ndarray) -> Any:
            return arm

        def update(self, context: np.ndarray, arm: int, reward: float) -> None: ...

    with pytest.raises(FeelgoodError, match=r"odd chose .* in round 1: return a whole number"):
        play("linear-20", {"odd": lambda s, n: Odd()}, rounds=20, seeds=1)


def test_agents_are_a_dictionary() -> None:
    with pytest.raises(FeelgoodError, match="give a dictionary"):
        play("linear-20", [], rounds=20)


def test_an_agent_in_torch() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")

    class Mean:
        def __init__(self, spec: feelgood.Spec) -> None:
            self.sums, self.counts = torch.zeros(spec.arms), torch.ones(spec.arms)

        def choose(self, context: np.ndarray) -> int:
            return int(torch.argmax(self.sums / self.counts))

        def update(self, context: np.ndarray, arm: int, reward: float) -> None:
            self.sums[arm] += reward
            self.counts[arm] += 1

    result = play("linear-20", {"m": lambda s, n: Mean(s)}, rounds=50, seeds=2, notify=None)
    assert np.isfinite(result["m"].final_regret).all()
