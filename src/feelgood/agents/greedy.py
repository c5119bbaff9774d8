"""The best arm of the estimate, without any exploration."""

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from feelgood.agents.arm_laws import drawn_arm, shared_by_best
from feelgood.agents.estimates import EstimateAgent, EstimateState
from feelgood.core.policy import AGENTS, Hints, Needs
from feelgood.core.settings import setting
from feelgood.core.spec import Spec
from feelgood.numerics import lanes
from feelgood.numerics.lanes import Mask
from feelgood.targets import models


@AGENTS.register("greedy", family="Greedy and random")
class Greedy(EstimateAgent):
    """The best arm of the estimate, and no exploration at all.

    Plays argmax_a f_θ̂(x, a); of several best arms each has the same probability. θ̂ is the
    posterior's mode: the ridge estimate V⁻¹b, or that of the logistic model for Bernoulli rewards.

    An arm that was never played has the estimate 0 where arms have parameters of their own, and
    arms that pay more than 0 would never give way to it. So the first `pulls` rounds per parameter
    vector go round the arms.

    Bastani, Bayati and Khosravi, "Mostly exploration-free algorithms for contextual bandits",
    Management Science 2021. Riquelme, Tucker and Snoek, "Deep Bayesian bandits showdown", ICLR
    2018, for the first pulls, of which there are two as well.
    """

    pulls: int = setting(
        2, "first rounds per parameter vector, which go round the arms", low=0, high=10_000
    )

    def needs(self, spec: Spec) -> Needs:
        del spec
        return Needs(choose=1)

    def choose(
        self,
        noise: Float[Array, "normals *lanes"],
        state: EstimateState,
        context: Float[Array, "..."],
        allowed: Mask = None,
    ) -> Int[Array, "*lanes"]:
        return drawn_arm(noise[0], self.pmf(state, context, allowed))

    def hints(self, spec: Spec) -> Hints:
        return super().hints(spec)._replace(pmf=self.pmf)

    def pmf(
        self, state: EstimateState, context: Float[Array, "..."], allowed: Mask = None
    ) -> Float[Array, "arms *lanes"]:
        """1 for the best arm, or in the first rounds for the one whose turn it is."""
        spec = state.spec
        law = shared_by_best(models.scores(spec, self.estimate(state).mean, context), allowed)
        number = state.count % lanes.allowed_count(spec.arms, allowed)
        turn = lanes.nth_allowed(jnp.broadcast_to(number, spec.lanes), allowed)
        first = state.count < self.pulls * spec.blocks
        return jnp.where(first, lanes.one_hot(turn, spec.arms), law)
