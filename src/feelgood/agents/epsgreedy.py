"""ε-greedy agents: contextual (ridge estimate) and tabular (one mean per arm)."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from feelgood.agents.ridge import RidgePolicy, RidgeState
from feelgood.core.policy import AGENTS, Hints, Policy, Report
from feelgood.core.settings import setting
from feelgood.core.spec import Number, Spec
from feelgood.numerics import lanes
from feelgood.numerics.keys import AnyKey
from feelgood.targets import models

DECAYS = ("none", "sqrt")


def rate_of(epsilon: Number, decay: str, count: Int[Array, ""]) -> Number:
    """ε_t = ε or ε/√t, t from 1."""
    return epsilon / jnp.sqrt(count + 1.0) if decay == "sqrt" else epsilon


def explore(
    key: AnyKey,
    greedy: Int[Array, "*lanes"],
    arms: int,
    epsilon: Number,
    decay: str,
    count: Int[Array, ""],
) -> Int[Array, "*lanes"]:
    """The greedy arm, or with probability ε_t a uniform one; see `rate_of`.

    Where there is no greedy arm (see `lanes.argmax`), none is chosen.
    """
    rate = rate_of(epsilon, decay, count)
    coin, choice = lanes.uniform(key, 2)
    arm = jnp.minimum((choice * arms).astype(jnp.int32), arms - 1)
    return jnp.where((coin < rate) & (greedy < arms), arm, greedy)


def explored(greedy: Int[Array, "*lanes"], arms: int, rate: Number) -> Float[Array, "arms *lanes"]:
    """The law of `explore`: ε_t/K, and 1 − ε_t more for the greedy arm."""
    return rate / arms + (1.0 - rate) * lanes.one_hot(greedy, arms)


@AGENTS.register("epsgreedy", family="Greedy and random")
class EpsGreedy(RidgePolicy):
    """The best arm of a ridge estimate, and with probability ε a uniform one.

    The estimate is V⁻¹b with V = ρI + Σ x xᵀ, b = Σ r x; ε is constant or decays as ε/√t.
    """

    epsilon: Number = setting(
        0.1, "probability ε of a uniform arm", low=0.0, high=1.0, tune=(1e-3, 0.5)
    )
    decay: str = setting("none", "how ε falls: constant, or ε/√t", choices=DECAYS)

    def choose(
        self, noise: AnyKey, state: RidgeState, context: Float[Array, "..."]
    ) -> Int[Array, "*lanes"]:
        greedy = self._greedy(state, context)
        return explore(noise, greedy, state.spec.arms, self.epsilon, self.decay, state.count)

    def _greedy(self, state: RidgeState, context: Float[Array, "..."]) -> Int[Array, "*lanes"]:
        theta = lanes.solve_upper(state.ridge.factor, state.ridge.white)
        return lanes.argmax(models.scores(state.spec, theta, context))

    def hints(self, spec: Spec) -> Hints:
        return super().hints(spec)._replace(pmf=self.pmf)

    def pmf(self, state: RidgeState, context: Float[Array, "..."]) -> Float[Array, "arms *lanes"]:
        """ε_t/K, and 1 − ε_t more for the best arm."""
        rate = rate_of(self.epsilon, self.decay, state.count)
        return explored(self._greedy(state, context), state.spec.arms, rate)


class Table(NamedTuple):
    """Plays and mean reward of each arm."""

    plays: Float[Array, "arms *lanes"]
    mean: Float[Array, "arms *lanes"]
    observed: Int[Array, ""]


@AGENTS.register("epsgreedy-tabular", family="Greedy and random")
class TabularEpsGreedy(Policy):
    """The arm with the best average so far, and with probability ε a uniform one; no context.

    Every arm is played once before the averages count. This is the ε-greedy of the paper's tables,
    there with ε_t = ε/√t.
    """

    epsilon: Number = setting(
        0.1, "probability ε of a uniform arm", low=0.0, high=1.0, tune=(1e-3, 0.5)
    )
    decay: str = setting("sqrt", "how ε falls: constant, or ε/√t", choices=DECAYS)

    def init(self, key: AnyKey, spec: Spec) -> Table:
        del key
        zeros = jnp.zeros((spec.arms, *spec.lanes))
        return Table(plays=zeros, mean=zeros, observed=jnp.zeros((), jnp.int32))

    def choose(
        self, noise: AnyKey, state: Table, context: Float[Array, "..."]
    ) -> Int[Array, "*lanes"]:
        del context
        greedy, some_untried = self._greedy(state)
        arms = state.plays.shape[0]
        arm = explore(noise, greedy, arms, self.epsilon, self.decay, state.observed)
        return jnp.where(some_untried, greedy, arm)

    @staticmethod
    def _greedy(state: Table) -> tuple[Int[Array, "*lanes"], Bool[Array, "*lanes"]]:
        """The first arm that was never played, else the best; and which of the two it is."""
        untried = state.plays == 0
        greedy = jnp.argmax(jnp.where(untried, jnp.inf, state.mean), axis=0)
        return greedy, jnp.any(untried, axis=0)

    def update(
        self,
        state: Table,
        context: Float[Array, "..."],
        arm: Int[Array, "*lanes"],
        reward: Float[Array, "*lanes"],
    ) -> Table:
        del context
        onehot = lanes.one_hot(arm, state.plays.shape[0])
        plays = state.plays + onehot
        mean = state.mean + onehot * (reward - state.mean) / jnp.maximum(plays, 1.0)
        return Table(plays=plays, mean=mean, observed=state.observed + 1)

    def report(self, state: Table) -> Report:
        return Report(finite=jnp.isfinite(jnp.sum(state.mean, axis=0)))

    def hints(self, spec: Spec) -> Hints:
        del spec
        return Hints(layout="lanes", pmf=self.pmf)

    def pmf(self, state: Table, context: Float[Array, "..."]) -> Float[Array, "arms *lanes"]:
        """ε_t/K, and 1 − ε_t more for the best arm; an untried arm with certainty."""
        del context
        greedy, some_untried = self._greedy(state)
        rate = rate_of(self.epsilon, self.decay, state.observed)
        return explored(greedy, state.plays.shape[0], jnp.where(some_untried, 0.0, rate))
