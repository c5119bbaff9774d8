"""What all agents with a network share: the network, what is remembered, when it learns."""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from feelgood.core.policy import Hints, Policy, Report
from feelgood.core.registry import Entry, Family
from feelgood.core.settings import setting, settings_of
from feelgood.core.spec import Layout, Number, Spec
from feelgood.numerics import lanes
from feelgood.numerics.keys import AnyKey
from feelgood.numerics.lanes import Mask
from feelgood.targets.bonus import FeelGood, weighted_bonus
from feelgood.targets.losses import LOSSES, loss_for
from feelgood.targets.network_energy import NetworkEnergy
from feelgood.targets.networks import Network, layers_setting, parse_layers
from feelgood.targets.replay import Batch, Replay, row_bytes, tree_slice

#: Copies of a round's random numbers and batches that a program may hold at once.
WORKING_COPIES = 3


class NeuralPolicy(Policy):
    """An agent with a network f_θ. Written for one chain; chains lead once it is lifted."""

    layers: str = layers_setting("50")
    activation: str = setting("relu", "activation of hidden layers", choices=("relu", "leaky"))
    likelihood: str = setting("squared", "loss; auto follows the testbed", choices=LOSSES)
    batch: int = setting(
        64, "rounds per mini-batch, drawn uniformly; 0: the whole history", low=0, high=1_000_000
    )
    updates: int = setting(20, "inner steps when the network learns", low=1, high=100_000)
    update_every: int = setting(
        1, "the network learns once in so many rounds", low=1, high=1_000_000
    )

    # ---- the network --------------------------------------------------------------------

    def network(self, spec: Spec) -> Network:
        """The network for this problem. Batches are noisier than the last digits of a product."""
        return Network(
            spec=spec,
            layers=parse_layers(self.layers),
            activation="leaky" if self.activation == "leaky" else "relu",
            exact=self.batch == 0,
        )

    def energy_with(
        self, spec: Spec, eta: Number, rho: Number, bonus: FeelGood | None
    ) -> NetworkEnergy:
        """L for this problem."""
        likelihood = loss_for(self.likelihood, spec)
        return NetworkEnergy(self.network(spec), eta, rho, bonus, likelihood)

    # ---- learning -----------------------------------------------------------------------

    def due(self, count: Int[Array, ""]) -> Bool[Array, ""]:
        """Whether the network learns in this round: not before there are data."""
        return (count > 0) & (count % self.update_every == 0)

    def batches(self, key: AnyKey, replay: Replay, steps: int) -> Batch | None:
        """The batches of `steps` steps one after the other, drawn uniformly with replacement.

        All are gathered at once: in the inner loop a gather costs as much as a product.
        """
        if self.batch == 0:
            return None
        most = jnp.maximum(replay.filled, 1)
        return replay.gather(lanes.randint(key, steps * self.batch, most), self.batch)

    # ---- the engine ---------------------------------------------------------------------

    def reads_history(self) -> bool:
        """Whether rounds read the whole history."""
        return self.batch == 0

    def numbers_per_parameter(self, layout: Layout) -> int:
        """Arrays of the size of θ that the state and one round's random numbers take."""
        del layout
        return 4

    def hints(self, spec: Spec) -> Hints:
        network = self.network(spec)
        activations = 4 * 4 * spec.arms * sum(network.layers)
        fixed = (
            WORKING_COPIES * self.updates * self.batch * row_bytes(network)
            + self.batch * activations
            + 4 * network.parameters * self.numbers_per_parameter(spec.layout)
        )
        per_round = 2 * row_bytes(network) + (0 if self.batch else activations)
        return Hints(
            layout="chains first",
            company="none",  # one chain's products keep a core busy; batched ones are slower there
            grows=self.reads_history(),
            memory=(fixed, per_round),
        )


def play_greedily(
    network: Network,
    theta: Float[Array, " parameters"],
    context: Float[Array, "..."],
    allowed: Mask,
) -> Int[Array, ""]:
    """The arm with the largest f, of those allowed."""
    return lanes.argmax(network.scores(theta, context), allowed)


def maybe(due: Bool[Array, ""], learn: Callable[[Any], Any], state: Any) -> Any:
    """`learn(state)` if it is time to."""
    return lax.cond(due, learn, lambda same: same, state)


# ---- agents that learn by gradient descent --------------------------------------------------


class TrainedState(eqx.Module):
    """What is remembered, the parameters (of several networks, if so), what it explores by."""

    replay: Replay
    theta: Float[Array, "*members parameters"]
    extra: Any
    spec: Spec = eqx.field(static=True)


class TrainedAgent(NeuralPolicy):
    """An agent whose network minimises the mean loss by stochastic gradient descent.

    Every `update_every` rounds: `updates` steps θ ← θ − lr (∇ mean[ℓ − λ_s φ(max_a f)] + (w/t) θ)
    with weight decay w, each on a fresh batch. The bonus is that of the feel-good agents, absent in
    the others.
    """

    bonus: FeelGood | None = eqx.field(default=None, kw_only=True)

    lr: Number = setting(
        0.05, "learning rate of the network", above=0.0, high=1e6, tune=(5e-3, 0.5)
    )

    @abstractmethod
    def weight_decay(self, state: TrainedState) -> Number:
        """w."""

    def explorer(self, network: Network) -> Any:
        """What the agent explores by, before the first round."""
        del network
        return ()

    def observed(
        self,
        state: TrainedState,
        context: Float[Array, "..."],
        arm: Int[Array, ""],
        reward: Float[Array, ""],
    ) -> Any:
        """That after one more observation."""
        del context, arm, reward
        return state.extra

    def retrained(self, state: TrainedState) -> Any:
        """That after the network has changed."""
        return state.extra

    def init(self, key: AnyKey, spec: Spec) -> TrainedState:
        network = self.network(spec)
        return TrainedState(
            replay=Replay.empty(network),
            theta=network.init(key),
            extra=self.explorer(network),
            spec=spec,
        )

    def reserve(self, state: TrainedState, rounds: int) -> TrainedState:
        return TrainedState(state.replay.reserve(rounds), state.theta, state.extra, state.spec)

    def learn(self, key: AnyKey, state: TrainedState) -> TrainedState:
        """All steps of one learning."""
        replay = state.replay
        energy = self.energy_with(state.spec, jnp.ones(()), jnp.zeros(()), self.bonus)
        batches = self.batches(key, replay, self.updates)
        size = self.batch if self.batch else jnp.maximum(replay.filled, 1)
        decay = self.weight_decay(state) / (replay.filled + 1.0)
        network = energy.network

        def step(i: Int[Array, ""], theta: Array) -> Array:
            if batches is None:
                _, gradient = replay.total(energy.data_term, theta)
            else:
                batch = tree_slice(batches, i * self.batch, self.batch)
                _, gradient = energy.data_term(batch, theta)
            return theta - self.lr * (gradient / size + decay * theta)

        theta = network.widened(state.theta)
        theta = lax.fori_loop(0, self.updates, step, theta, unroll=state.spec.layout.unroll)
        theta = theta[: network.parameters]
        moved = TrainedState(replay, theta, state.extra, state.spec)
        return TrainedState(replay, theta, self.retrained(moved), state.spec)

    def draw(self, noise: AnyKey, state: TrainedState) -> TrainedState:
        """The network learns, if it is time to."""
        return maybe(self.due(state.replay.filled), lambda s: self.learn(noise, s), state)

    def update(
        self,
        state: TrainedState,
        context: Float[Array, "..."],
        arm: Int[Array, ""],
        reward: Float[Array, ""],
    ) -> TrainedState:
        replay = state.replay.add(self.network(state.spec).row(context), arm, reward)
        extra = self.observed(state, context, arm, reward)
        return TrainedState(replay, replay.unless_lost(state.theta), extra, state.spec)

    def report(self, state: TrainedState) -> Report:
        return Report(finite=jnp.isfinite(jnp.sum(state.theta)))


class TrainedPolicy(TrainedAgent):
    """Such an agent with a weight decay of its own, which means nothing but itself."""

    reg: Number = setting(0.01, "regularisation: weight decay is reg/t", low=0.0, high=1e9)

    def weight_decay(self, state: TrainedState) -> Number:
        del state
        return self.reg


def with_bonus(
    agent: type[TrainedAgent], name: str, doc: str, bonus: type[FeelGood]
) -> Family[Policy]:
    """An agent with a feel-good bonus in its loss, under a name of its own."""
    own, more = settings_of(agent), settings_of(bonus)

    def make(values: Mapping[str, Any]) -> Policy:
        chosen = {key: values[key] for key in own}
        return agent(bonus=weighted_bonus(bonus, values), **chosen)

    entry = Entry(name=name, doc=doc, settings={**own, **more}, make=make)
    return Family(name, doc, {name: entry}.get, (name,), defined=agent, family="Networks")
