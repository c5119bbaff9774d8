"""The released ε-greedy agent: no context, and an ε that counts from the last first play."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from feelgood.agents.epsgreedy import Table, TabularEpsGreedy, explored
from feelgood.core.policy import Hints
from feelgood.core.settings import setting
from feelgood.core.spec import Number, Spec
from feelgood.numerics import lanes
from feelgood.numerics.keys import AnyKey
from feelgood.numerics.lanes import Mask
from feelgood.released.released_names import register_agent


@register_agent("epsgreedy-tabular")
class ReleasedEpsGreedy(TabularEpsGreedy):
    """The arm with the best average, and with probability ε/√(t − arms) a uniform one.

    Every arm is played once before, in a random order; equally good arms are drawn from
    (src/baseline.py:118-155). `decay = "none"` keeps ε.
    """

    epsilon: Number = setting(0.01, "probability ε of a uniform arm", low=0.0, high=1.0)

    def choose(
        self,
        noise: AnyKey,
        state: Table,
        context: Float[Array, "..."],
        allowed: Mask = None,
    ) -> Int[Array, "*lanes"]:
        del context
        arms = state.plays.shape[0]
        coin, *tickets = lanes.uniform(noise, 1 + 2 * arms)
        first, second = jnp.stack(tickets[:arms]), jnp.stack(tickets[arms:])
        best = lanes.argmax(jnp.where(self._best(state, allowed), first, -1.0), allowed)
        random = lanes.argmax(second, allowed)
        return jnp.where(coin < self._rate(state, allowed), random, best)

    def _best(self, state: Table, allowed: Mask) -> Bool[Array, "arms *lanes"]:
        """The arms that were never played; else those with the largest average."""
        untried, mean = state.plays == 0, state.mean
        if allowed is not None:
            untried, mean = untried & allowed, jnp.where(allowed, mean, -jnp.inf)
        best = mean == jnp.max(mean, axis=0)
        return jnp.where(jnp.any(untried, axis=0), untried, best)

    def _rate(self, state: Table, allowed: Mask) -> Float[Array, "*lanes"]:
        """ε_t; 0 while an arm was never played."""
        arms = state.plays.shape[0]
        after = jnp.maximum(state.observed + 1.0 - arms, 1.0)
        rate = self.epsilon / jnp.sqrt(after) if self.decay == "sqrt" else self.epsilon
        untried = state.plays == 0 if allowed is None else (state.plays == 0) & allowed
        return jnp.where(jnp.any(untried, axis=0), 0.0, rate)

    def hints(self, spec: Spec) -> Hints:
        return super().hints(spec)._replace(pmf=self.pmf)

    def pmf(
        self, state: Table, context: Float[Array, "..."], allowed: Mask = None
    ) -> Float[Array, "arms *lanes"]:
        """Even over the best, and over all with probability ε_t."""
        del context
        best = self._best(state, allowed).astype(jnp.float32)
        rate, arms = self._rate(state, allowed), state.plays.shape[0]
        uniform = explored(jnp.full(rate.shape, arms), arms, rate, allowed)
        return uniform + (1.0 - rate) * best / jnp.sum(best, axis=0)
