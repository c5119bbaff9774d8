"""Inverse gap weighting: arms are played the less, the worse their estimate is."""

import math

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from feelgood.agents.arm_laws import drawn_arm, shared_by_best
from feelgood.agents.estimates import EstimateAgent, EstimateState, FittedState
from feelgood.core.policy import AGENTS, Hints, Needs
from feelgood.core.settings import setting
from feelgood.core.spec import Number, Spec

#: The largest standard deviation of a reward that is 0 or 1.
_BERNOULLI_NOISE = 0.5


def inverse_gap_weights(
    rewards: Float[Array, "arms *lanes"], gamma: Float[Array, "*lanes"]
) -> Float[Array, "arms *lanes"]:
    """1/(K + γ(f̂* − f̂_a)), and the rest to the best arm; several best ones share it.

    The sum of the others is at most (K − 1)/K, so the best arm has at least 1/K.
    """
    best = jnp.max(rewards, axis=0)
    law = 1.0 / (rewards.shape[0] + gamma * (best - rewards))
    return law + (1.0 - jnp.sum(law, axis=0)) * shared_by_best(rewards)


@AGENTS.register("squarecb", family="Greedy and random")
class SquareCB(EstimateAgent):
    """Each arm with probability 1/(K + γ · its estimated gap), and the best with the rest.

    With the estimated mean rewards f̂ (x·θ̂, or μ(x·θ̂) for Bernoulli rewards) and the best arm's f̂*:

        p_a = 1/(K + γ_t (f̂* − f̂_a)),   γ_t = γ √(K/D) t^exponent / σ,

    where t counts the rewards so far: the first arm is uniform. γ = 0 is uniform, and γ → ∞ is
    `greedy`. The theory has γ = √(K T/R) with the total squared error R of the estimates. A linear
    model with D parameters has R ≈ σ² D log T, and γ_t follows that but for the logarithm. σ is the
    noise, told or learned, and ½ for Bernoulli rewards: so no unit of the rewards matters.

    Foster and Rakhlin, "Beyond UCB: optimal and efficient contextual bandits with regression
    oracles", ICML 2020.
    """

    gamma: Number = setting(20.0, "weight γ of an estimated gap", low=0.0, high=1e9)
    exponent: Number = setting(0.5, "how γ grows with the number of rewards", low=0.0, high=4.0)

    def needs(self, spec: Spec) -> Needs:
        del spec
        return Needs(choose=1)

    def choose(
        self,
        noise: Float[Array, "normals *lanes"],
        state: EstimateState,
        context: Float[Array, "..."],
    ) -> Int[Array, "*lanes"]:
        return drawn_arm(noise[0], self.pmf(state, context))

    def hints(self, spec: Spec) -> Hints:
        return super().hints(spec)._replace(pmf=self.pmf)

    def pmf(
        self, state: EstimateState, context: Float[Array, "..."]
    ) -> Float[Array, "arms *lanes"]:
        """The rule itself."""
        spec = state.spec
        if isinstance(state, FittedState):
            noise = jnp.full(spec.lanes, _BERNOULLI_NOISE)
        else:
            noise = jnp.sqrt(self.estimate(state).variance)
        # 0 to the power of 0 is 1: a γ that does not grow is there from the first round on.
        growth = math.sqrt(spec.arms / spec.parameters) * (1.0 * state.count) ** self.exponent
        return inverse_gap_weights(self.mean_rewards(state, context), self.gamma * growth / noise)
