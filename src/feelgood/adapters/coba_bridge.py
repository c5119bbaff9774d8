"""coba: our agents as its learners, and its environments as our testbeds."""

from collections.abc import Hashable, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np

from feelgood.core.errors import FeelgoodError, missing_package, shown
from feelgood.live.bandit import Bandit
from feelgood.testbeds.payoffs import Payoffs

try:
    from coba.primitives import Learner
except ModuleNotFoundError:
    raise missing_package("the bridge to coba needs", "coba", "coba") from None


class CobaLearner(Learner):
    """An agent of ours as a learner of coba.

    The first prediction makes a `Bandit`. Contexts are sequences of numbers, one number, or None.
    What actions are, the first ones say, or `by_features` does:

    - Names, numbers and one-hot vectors are arms, each with parameters of its own. The features are
      a constant and the context. An action that was not there before is added, and those that are
      not offered are masked.
    - Other sequences of numbers are features (`by_features=True`), and all actions share one
      parameter vector: of a constant, the action's numbers, and their products with the context's.
      The number of actions must stay the same.

    **Example:**

    >>> import coba
    >>> from feelgood.adapters.coba_bridge import CobaLearner
    >>> worlds = coba.Environments.from_linear_synthetic(100, n_actions=3, seed=1)
    >>> result = coba.Experiment(worlds, [CobaLearner("linucb")]).run(quiet=True)
    >>> len(result.interactions)
    100
    """

    def __init__(
        self,
        agent: str,
        *,
        settings: Mapping[str, Any] | None = None,
        seed: int = 0,
        by_features: bool | None = None,
        rewards: str = "squared",
    ) -> None:
        self._agent, self._settings, self._seed = agent, dict(settings or {}), seed
        self._by_features, self._rewards = by_features, rewards
        self._bandit: Bandit | None = None
        #: The decision that waits for its reward.
        self._waiting: int | None = None

    @property
    def params(self) -> Mapping[str, Any]:
        """What coba's tables call it."""
        return {"family": f"feelgood-{self._agent}", "seed": self._seed, **self._settings}

    def predict(self, context: Any, actions: Sequence[Any]) -> dict[str, Any]:
        """The action, and its probability where the agent has one."""
        if self._by_features is None:
            self._by_features = not all(map(_is_name, actions))
        own = plain_numbers(context, "context")
        labels: list[Hashable] = [_label(action) for action in actions]
        seen: list[Any] = [1.0, *own]
        if self._by_features:
            seen = [_features(own, action) for action in actions]
            labels = list(range(len(actions)))
        bandit = self._ready(labels, seen)
        decision = bandit.act(seen, mask=None if set(labels) == set(bandit.arms) else labels)
        self._waiting = decision.id
        action = actions[labels.index(decision.arm)]
        if decision.probability is None:
            return {"action": action}
        return {"action_prob": (action, float(decision.probability))}

    def learn(
        self, context: Any, action: Any, reward: float, probability: float | None, **_: Any
    ) -> None:
        """Learn from the reward of the last prediction, or from one of a log."""
        del probability
        if self._waiting is not None and self._bandit is not None:
            number, self._waiting = self._waiting, None
            self._bandit.update(number, float(reward))
            return
        if self._by_features:
            raise FeelgoodError(
                "a log cannot be learned by_features: coba does not say which actions there were."
            )
        label, seen = _label(action), [1.0, *plain_numbers(context, "context")]
        self._ready([label], seen).learn(seen, label, float(reward))

    def _ready(self, labels: Sequence[Hashable], seen: list[Any]) -> Bandit:
        """The bandit, with all these arms."""
        if self._bandit is None:
            size: dict[str, Any] = {"features": len(seen)}
            if self._by_features:
                size = {"arm_features": len(seen[0])}
            self._bandit = Bandit(
                self._agent,
                arms=list(labels),
                seed=self._seed,
                settings=self._settings or None,
                rewards=self._rewards,
                **size,
            )
        for label in labels:
            if label not in self._bandit.arms:
                self._bandit.add_arm(label)
        return self._bandit


def coba_testbed(environment: Any, *, rounds: int = 10_000, **options: Any) -> Payoffs:
    """A testbed of the interactions of an environment of coba.

    **Arguments:**

    - `environment`: whatever has `read()`, such as a member of `coba.Environments`. Its contexts
      are sequences of numbers, and its interactions have the same number of actions and the reward
      of each.
    - `rounds`: how many interactions are read at most. Every seed meets them in an order of its
      own; coba's own order is not kept.
    - `options`: those of `Payoffs.from_arrays`, such as `name`.

    **Example:**

    >>> import coba, feelgood
    >>> from feelgood.adapters.coba_bridge import coba_testbed
    >>> worlds = coba.Environments.from_linear_synthetic(200, 3, n_action_features=0, seed=1)
    >>> world = worlds[0]
    >>> feelgood.run(coba_testbed(world), "linucb", rounds=200, seeds=2).labels
    ('linucb',)
    """
    contexts, payoffs = [], []
    for interaction in islice(environment.read(), rounds):
        try:
            actions, paid = interaction["actions"], interaction["rewards"]
        except (KeyError, TypeError):
            raise FeelgoodError(
                "an interaction of this environment has no rewards of all actions: use one of "
                "coba's simulations, not a log."
            ) from None
        if not all(map(_is_name, actions)):
            raise FeelgoodError(
                "the actions of this environment have features that change: a testbed of a table "
                "needs actions that are names, or one-hot vectors."
            )
        contexts.append(plain_numbers(interaction["context"], "context"))
        payoffs.append([float(paid(a)) for a in actions] if callable(paid) else list(paid))
        if len(payoffs[-1]) != len(payoffs[0]) or len(contexts[-1]) != len(contexts[0]):
            raise FeelgoodError(
                f"interaction {len(payoffs)} has {len(payoffs[-1])} actions and a context of "
                f"{len(contexts[-1])} numbers, the first {len(payoffs[0])} and "
                f"{len(contexts[0])}: a testbed needs the same in all rounds."
            )
    if not payoffs:
        raise FeelgoodError("this environment has no interactions: nothing can be played.")
    features = np.array(contexts, np.float64).reshape(len(contexts), -1)
    if not features.size:  # a bandit without contexts shows a constant
        features = np.ones((len(payoffs), 1))
    options = {"horizon": len(payoffs), "notify": None, **options}
    return Payoffs.from_arrays(features, np.array(payoffs, np.float64), **options)


def plain_numbers(features: Any, what: str) -> list[float]:
    """The numbers of a context or an action: none, one, or a sequence of them."""
    if features is None:
        return []
    sequence: Any = [features] if np.isscalar(features) else features
    try:
        if isinstance(sequence, Mapping):
            raise TypeError
        return [float(value) for value in sequence]
    except (TypeError, ValueError):
        raise FeelgoodError(
            f"the {what} {shown(features)} is no sequence of numbers: encode it first, such as by "
            "coba's Flatten or Finalize filters."
        ) from None


def _features(context: list[float], action: Any) -> list[float]:
    """What an action shows: a constant, its numbers, and their products with the context's."""
    own = plain_numbers(action, "action")
    return [1.0, *own, *(c * a for c in context for a in own)]


def _is_name(action: Any) -> bool:
    """Whether an action only says which it is: a text, a number or a one-hot vector."""
    if isinstance(action, (list, tuple)):
        return sorted(action, key=abs) == [0] * (len(action) - 1) + [1]
    return not isinstance(action, Mapping)


def _label(action: Any) -> Hashable:
    """An action as a name of an arm: itself, or a text of its parts."""
    if isinstance(action, (str, int)) and not isinstance(action, bool):
        return action
    return repr(tuple(action) if isinstance(action, (list, tuple)) else action)
