"""A testbed as an environment of Gymnasium: one step is one round."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from feelgood.core.arguments import parse_rounds
from feelgood.core.errors import missing_package
from feelgood.core.testbed import Testbed
from feelgood.engine.building import build_testbed
from feelgood.engine.environment import environment

try:
    import gymnasium
except ModuleNotFoundError:
    raise missing_package("environments need", "gymnasium", "gymnasium") from None

_MOST_SEEDS = 2**32


class BanditEnv(gymnasium.Env[np.ndarray, np.int64]):
    """A testbed for one player. `reset(seed=s)` begins the run that `feelgood.run` has for seed s.

    The observation is the context and an action is an arm. The reward is that of the arm, with its
    noise. `info["regret"]` is what the best arm pays more on average, in this round, and
    `info["total_regret"]` is its sum; an agent must not look at them. An episode ends by
    truncation, after `rounds` steps.

    **Example:**

    >>> from feelgood.adapters.gymnasium_bridge import BanditEnv
    >>> env = BanditEnv("linear-20", rounds=100)
    >>> context, _ = env.reset(seed=3)
    >>> context, reward, terminated, truncated, info = env.step(0)
    >>> context.shape, info["regret"] >= 0
    ((4,), True)
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012  (Gymnasium's own name)

    def __init__(
        self,
        testbed: str | Testbed | Any,
        *,
        rounds: int | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        _, self.testbed, _ = build_testbed(testbed, settings)
        self.rounds = self.testbed.rounds if rounds is None else parse_rounds(rounds)
        spec = self.testbed.spec
        self.action_space = gymnasium.spaces.Discrete(spec.arms)
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, spec.context_shape)
        self._round, self._total = self.rounds, 0.0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin a run; without a seed, with one that the last seed leads to."""
        super().reset(seed=seed)
        number = int(self.np_random.integers(_MOST_SEEDS)) if seed is None else seed
        block = environment(self.testbed, [number % _MOST_SEEDS], self.rounds)
        self._contexts, self._rewards, self._means = (np.asarray(x)[..., 0] for x in block)
        self._round, self._total = 0, 0.0
        return self._contexts[0].copy(), {"seed": number}

    def step(self, action: np.int64 | int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Play an arm; after the last round the last context is shown again."""
        if self._round >= self.rounds:
            raise gymnasium.error.ResetNeeded("the episode has ended: call reset first.")
        if not self.action_space.contains(action):
            last = self.testbed.spec.arms - 1
            raise gymnasium.error.InvalidAction(f"{action!r} is no arm: use 0 to {last}.")
        t, arm = self._round, int(action)
        means = self._means[t]
        regret = float(means.max() - means[arm])
        self._total += regret
        self._round += 1
        info = {"regret": regret, "total_regret": self._total, "best_arm": int(means.argmax())}
        shown = self._contexts[min(self._round, self.rounds - 1)].copy()
        return shown, float(self._rewards[t, arm]), False, self._round >= self.rounds, info
