"""The released agents whose networks descend: when they stop, and what they see of a bonus."""

from typing import Any

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

from feelgood.agents.neural import TrainedAgent, TrainedState
from feelgood.agents.neural_greedy import NeuralEpsGreedy
from feelgood.agents.neural_ts import Explorer, NeuralTS
from feelgood.agents.neural_ucb import NeuralUCB
from feelgood.core.settings import setting
from feelgood.core.spec import Number
from feelgood.numerics import lanes
from feelgood.numerics.keys import AnyKey
from feelgood.released.released_names import register_agent, register_bonus_agent
from feelgood.released.stored_batches import stored_batch
from feelgood.targets.best_arms import best_arm
from feelgood.targets.bonus import FeelGood, SmoothedFeelGood, on_scores
from feelgood.targets.losses import loss, loss_for, loss_slope
from feelgood.targets.replay import Batch, tree_slice

_Vector = Float[Array, " parameters"]


class Descent(TrainedAgent):
    """Gradient descent on the mean loss as released (Neural/algo/baselines.py:245-329).

    - `stop_below`: a round's steps on the whole history end after the first one whose loss was
      smaller. 0: never.
    - `most_updates`: no round has more steps (run_classifier.py:101).
    - `stored_batches`: batches in stored order, from the first row on in every round. The right
      ones are uniform.
    - `decay_at`: weight decay is reg/t with t the rounds so far, or those plus one.
    - `bonus_arm` and `bonus_weight` (fg_neuralts.py:35-101): the bonus is that of the played arm,
      and the *sum* over rounds stands beside the *mean* loss. The right bonus is that of the best
      arm, and a mean.
    - `stop_sees_bonus`: the loss that may end a round has the bonus in it. With a sum it is
      soon below 0, and a round makes one step.
    """

    stop_below: Number = setting(1e-3, "a loss that ends a round's steps", low=0.0, high=1e6)
    most_updates: int = setting(50, "inner steps at most", low=1, high=100_000)
    stored_batches: bool = setting(True, "batches in stored order")
    decay_at: str = setting(
        "rounds", "what weight decay is divided by", choices=("rounds", "rounds plus one")
    )
    bonus_arm: str = setting("played", "the arm of the bonus", choices=("played", "best"))
    bonus_weight: str = setting(
        "sum", "the bonus beside the mean loss: a sum or a mean", choices=("sum", "mean")
    )
    stop_sees_bonus: bool = setting(True, "whether the stop sees the bonus")

    def learn(self, key: AnyKey, state: TrainedState) -> TrainedState:
        """All steps of one learning."""
        replay, steps = state.replay, min(self.updates, self.most_updates)
        gathered = None if self.stored_batches else self.batches(key, replay, steps)
        after = 0.0 if self.decay_at == "rounds" else 1.0
        decay = self.weight_decay(state) / jnp.maximum(replay.filled + after, 1.0)

        def at(i: Int[Array, ""], theta: _Vector) -> tuple[Number, _Vector]:
            """The loss that the stop sees, and the gradient."""
            if self.batch == 0:
                size = jnp.maximum(1.0 * replay.filled, 1.0)
                return replay.total(lambda b, v: self._sums(state, b, v, size), theta)
            if gathered is None:
                batch = stored_batch(replay, i, self.batch)
            else:
                batch = tree_slice(gathered, i * self.batch, self.batch)
            return self._sums(state, batch, theta, jnp.maximum(jnp.sum(batch.counts), 1.0))

        def step(carry: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
            i, theta, _ = carry
            value, gradient = at(i, theta)
            stops = (value < self.stop_below) if self.batch == 0 else jnp.zeros((), bool)
            return i + 1, theta - self.lr * (gradient + decay * theta), stops

        def goes_on(carry: tuple[Any, Any, Any]) -> Any:
            return (carry[0] < steps) & ~carry[2]

        start = (jnp.zeros((), jnp.int32), state.theta, jnp.zeros((), bool))
        _, theta, _ = lax.while_loop(goes_on, step, start)
        moved = TrainedState(replay, theta, state.extra, state.spec)
        return TrainedState(replay, theta, self.retrained(moved), state.spec)

    def _sums(
        self, state: TrainedState, batch: Batch, theta: _Vector, size: Number
    ) -> tuple[Number, _Vector]:
        """A batch' part of the loss that the stop sees, and of the gradient."""
        network, likelihood = self.network(state.spec), loss_for(self.likelihood, state.spec)
        weights = network.split(theta)
        onehot = lanes.one_hot(batch.arms, state.spec.arms).T
        alone = self.bonus is None or self.bonus_arm == "played"
        scores, tape = network.forward(weights, batch.contexts, batch.arms if alone else None)
        played = scores[:, 0] if alone else jnp.sum(scores * onehot, axis=1)
        value = jnp.sum(loss(likelihood, played, batch.rewards) * batch.counts) / size
        slopes = (loss_slope(likelihood, played, batch.rewards) * batch.counts / size)[:, None]
        slopes = slopes if alone else slopes * onehot
        if self.bonus is not None:
            bonus = on_scores(self.bonus, likelihood)
            best, winner = (played, None) if alone else best_arm(scores.T)
            share = batch.counts * bonus.weighed(bonus.strength, batch.numbers)
            share = share if self.bonus_weight == "sum" else share / size
            pull = (share * bonus.slope(best))[:, None]
            slopes = slopes - (pull if winner is None else pull * winner.T)
            if self.stop_sees_bonus:
                value = value - jnp.sum(share * bonus.phi(best))
        return value, network.backward(weights, tape, slopes)[: len(theta)]


class ReleasedNeuralTS(Descent, NeuralTS):
    """NeuralTS as released.

    `design_after = "training"`: the played arm's gradient joins U after the round's training, with
    the new weights. The right one is that of the play.
    """

    design: str = setting(
        "diagonal",
        "design matrix: diagonal over all parameters, or last layer",
        choices=("diagonal", "last-layer"),
    )
    design_after: str = setting(
        "training", "when a round joins the design matrix", choices=("training", "play")
    )

    def observed(
        self,
        state: TrainedState,
        context: Float[Array, "..."],
        arm: Int[Array, ""],
        reward: Float[Array, ""],
    ) -> Explorer:
        if self.design_after == "training":
            return state.extra
        return super().observed(state, context, arm, reward)

    def retrained(self, state: TrainedState) -> Explorer:
        if self.design_after == "play":
            return super().retrained(state)
        replay = state.replay
        last = jnp.maximum(replay.filled - 1, 0)
        context = replay.contexts[last][..., : state.spec.dim].T
        return super().observed(state, context, replay.arms[last], replay.rewards[last])


register_bonus_agent("neural-ts", ReleasedNeuralTS, None)
register_bonus_agent("fg-neural-ts", ReleasedNeuralTS, FeelGood, ", with the feel-good bonus")
register_bonus_agent(
    "sfg-neural-ts", ReleasedNeuralTS, SmoothedFeelGood, ", with the smoothed bonus"
)


@register_agent("neural-ucb")
class ReleasedNeuralUCB(Descent, NeuralUCB):
    """NeuralUCB as released: a diagonal design matrix, and the released descent."""


@register_agent("neural-eps-greedy")
class ReleasedNeuralEpsGreedy(Descent, NeuralEpsGreedy):
    """ε-greedy with a network as released: ε/√t, and no stop."""

    stop_below: Number = setting(0.0, "a loss that ends a round's steps", low=0.0, high=1e6)
    decay: str = setting("sqrt", "how ε falls: constant, or ε/√t", choices=("none", "sqrt"))
