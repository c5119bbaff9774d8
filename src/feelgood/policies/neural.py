"""What all agents with a network share: the network, what is remembered, when it learns."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from feelgood import history, lanes
from feelgood.bonus import FeelGood
from feelgood.lanes import AnyKey
from feelgood.network_energy import NetworkEnergy
from feelgood.networks import Network, layers_setting, parse_layers
from feelgood.protocols import Policy
from feelgood.replay import Batch, Replay, row_bytes
from feelgood.settings import setting
from feelgood.types import Likelihood, Number, Spec

#: Where the whole history is read on an accelerator, its capacity grows in so many steps.
GROWTH_STEPS = 10
#: Copies of a round's random numbers and batches that a program may hold at once.
WORKING_COPIES = 3


class NeuralPolicy(Policy):
    """An agent with a network f_θ. Written for one chain; chains lead once it is lifted."""

    layers: str = layers_setting("100")
    activation: str = setting("relu", "activation of hidden layers", choices=("relu", "leaky"))
    likelihood: str = setting(
        "auto", "loss; auto follows the testbed", choices=("auto", "squared", "bernoulli")
    )
    batch: int = setting(
        64, "rounds a mini-batch, drawn uniformly; 0: the whole history", low=0, high=1_000_000
    )
    updates: int = setting(20, "inner steps when the network learns", low=1, high=100_000)
    update_every: int = setting(1, "rounds from one learning to the next", low=1, high=1_000_000)

    chains_first = True

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
        likelihood: Likelihood = spec.rewards
        if self.likelihood == "squared":
            likelihood = "squared"
        elif self.likelihood == "bernoulli":
            likelihood = "bernoulli"
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
        return replay.gather(lanes.randint(key, steps * self.batch, most))

    # ---- the engine ---------------------------------------------------------------------

    def chains_per_program(self, spec: Spec) -> int | None:
        # One chain's products keep a core busy; batched ones are slower there.
        del spec
        return 1

    def segment_rounds(self, rounds: int, chains: int) -> int | None:
        del chains
        grows = self.batch == 0 and history.on_accelerator()
        return -(-rounds // GROWTH_STEPS) if grows else None

    def numbers_per_parameter(self) -> int:
        """Arrays of the size of θ that the state and one round's random numbers take."""
        return 4

    def memory(self, spec: Spec, rounds: int) -> int:
        network = self.network(spec)
        widths = spec.arms * sum(network.layers)
        rows = self.batch or rounds
        round_rows = self.updates * self.batch
        return (
            2 * rounds * row_bytes(network)
            + WORKING_COPIES * round_rows * row_bytes(network)
            + 4 * 4 * rows * widths
            + 4 * network.parameters * self.numbers_per_parameter()
        )


def play_greedily(
    network: Network, theta: Float[Array, " parameters"], context: Float[Array, "..."]
) -> Int[Array, ""]:
    """The arm with the largest f."""
    return jnp.argmax(network.scores(theta, context))


def maybe(due: Bool[Array, ""], learn: Any, state: Any) -> Any:
    """`learn(state)` if it is time to."""
    return jax.lax.cond(due, learn, lambda same: same, state)


def first_key(key: Key[Array, ""], stream: int) -> Key[Array, ""]:
    """One of the round's streams of random numbers."""
    return jax.random.fold_in(key, stream)
