"""An ensemble of networks with randomised priors."""

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from feelgood.agents.neural import TrainedState
from feelgood.agents.neural_members import MembersPolicy
from feelgood.core.policy import AGENTS
from feelgood.core.settings import setting
from feelgood.core.spec import Number
from feelgood.numerics.keys import AnyKey, fold_in
from feelgood.targets.networks import Network
from feelgood.targets.replay import Batch


@AGENTS.register("neural-ensemble", family="Networks")
class NeuralEnsemble(MembersPolicy):
    """A network drawn from an ensemble with randomised priors plays its best arm.

    Member k is f_k = g_{θ_k} + c p_k, where p_k is a random network of the same shape that never
    learns. θ_k minimises the mean loss of f_k by gradient descent. Where there are no data, members
    differ as their p_k do. With one member and c = 0 it is the greedy network.

    Osband, Aslanides and Cassirer, "Randomized prior functions for deep reinforcement learning",
    NeurIPS 2018; Lu and Van Roy, "Ensemble sampling", NeurIPS 2017.
    """

    prior_scale: Number = setting(
        1.0, "weight c of the random networks", low=0.0, high=1e9, tune=(0.1, 10.0)
    )

    def own(self, key: AnyKey, network: Network) -> Float[Array, "members parameters"]:
        """The parameters of p_k."""
        return jnp.stack([network.init(fold_in(key, k)) for k in range(self.members)])

    def made_to_see(
        self, state: TrainedState, batch: Batch
    ) -> tuple[Float[Array, "members rows"], Float[Array, "members rows"]]:
        network = self.network(state.spec)

        def fixed(theta: Float[Array, " parameters"]) -> Float[Array, " rows"]:
            return network.forward(network.split(theta), batch.contexts, batch.arms)[0][:, 0]

        offsets = self.prior_scale * self.of_each_member(state.spec, fixed, state.extra.own)
        return offsets, jnp.ones_like(offsets)

    def member_scores(
        self, state: TrainedState, member: Int[Array, ""], context: Float[Array, "..."]
    ) -> Float[Array, " arms"]:
        fixed = self.network(state.spec).scores(state.extra.own[member], context)
        return super().member_scores(state, member, context) + self.prior_scale * fixed
