"""A testbed as an environment of the real Gymnasium."""

import warnings

import numpy as np
import pytest

import feelgood

gymnasium = pytest.importorskip("gymnasium", reason="Gymnasium is not installed")
from gymnasium.utils.env_checker import check_env  # noqa: E402

from feelgood.adapters.gymnasium_bridge import BanditEnv  # noqa: E402
from feelgood.adapters.python_agents import play  # noqa: E402


@pytest.mark.parametrize(
    "testbed", ["linear-20", pytest.param("logistic-20", marks=pytest.mark.slow)]
)
def test_gymnasium_finds_nothing_wrong(testbed: str) -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*observation space m.*imum value is")
        warnings.filterwarnings("ignore", message=".*not having a spec|.*env.spec")
        check_env(BanditEnv(testbed, rounds=40), skip_render_check=True)


class InTurn:
    def __init__(self, arms: int) -> None:
        self.t, self.arms = -1, arms

    def choose(self, context: np.ndarray) -> int:
        self.t += 1
        return self.t % self.arms

    def update(self, context: np.ndarray, arm: int, reward: float) -> None: ...


def test_an_episode_is_the_run_of_that_seed() -> None:
    """Contexts, rewards and regret are those that agents of a run meet."""
    env = BanditEnv("linear-20", rounds=60)
    seen, total, end = [], 0.0, False
    context, _ = env.reset(seed=5)
    agent = InTurn(5)
    while not end:
        seen.append(context)
        context, _, terminated, end, info = env.step(agent.choose(context))
        total += info["regret"]
        assert not terminated
    assert len(seen) == 60
    assert info["total_regret"] == pytest.approx(total)
    made = {"turn": lambda spec, seed: InTurn(spec.arms)}
    run = play("linear-20", made, rounds=60, seeds=[5], notify=None)
    assert total == pytest.approx(run["turn"].final_regret[0], rel=1e-5)
    again, _ = env.reset(seed=5)
    np.testing.assert_array_equal(again, seen[0])


def test_misuse_is_refused() -> None:
    env = BanditEnv("linear-20", rounds=2)
    with pytest.raises(gymnasium.error.ResetNeeded, match="call reset first"):
        env.step(0)
    env.reset(seed=0)
    with pytest.raises(gymnasium.error.InvalidAction, match="use 0 to 4"):
        env.step(5)
    with pytest.raises(feelgood.FeelgoodError, match="unknown testbed"):
        BanditEnv("linear-none")
