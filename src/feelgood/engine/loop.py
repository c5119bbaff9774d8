"""The compiled part of a run: rounds of many chains, one after the other.

All functions here are traced. A group of chains begins with `Beginner`, and `Player` plays some
rounds of a block for all its chains together.
"""

import functools
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int, Key, UInt32

from feelgood.core.policy import Needs, Policy
from feelgood.core.spec import Spec
from feelgood.core.testbed import Testbed
from feelgood.engine.environment import Block, settled
from feelgood.numerics import lanes
from feelgood.numerics.keys import AnyKey, FirstKeys, LaneKeys, fold_in, round_key
from feelgood.numerics.noise import RoundNoise, completed, noise_ahead, round_noise
from feelgood.targets import models
from feelgood.targets.sums import Stats

#: Draws with the final data from which the effective sample size is estimated.
REPEATED_DRAWS = 200


# As `array[i]` and `array.at[i].set(value)`, without the code for negative indices.
def _row(array: Array, i: Int[Array, ""]) -> Array:
    return lax.dynamic_index_in_dim(array, i, 0, keepdims=False)


def _put(array: Array, value: Array, i: Int[Array, ""]) -> Array:
    return lax.dynamic_update_index_in_dim(array, value.astype(array.dtype), i, 0)


class Playing(NamedTuple):
    """Everything that a group of chains carries from round to round."""

    state: Any
    diverged_at: Int[Array, "*lanes"]
    #: What the chains have seen, where something is measured along the run.
    seen: Stats | None = None


class Played(NamedTuple):
    """What a call records of its rounds; rows of rounds not played are 0."""

    arms: Int[Array, "block *lanes"]
    health: dict[str, Float[Array, "block *lanes"]]
    #: The draws of the last round, where they are repeated.
    draws: Float[Array, "draws parameters *lanes"] | None

    def with_round(
        self,
        i: Int[Array, ""],
        arm: Int[Array, "*lanes"],
        health: dict[str, Float[Array, "*lanes"]],
        draws: Float[Array, "draws parameters *lanes"] | None,
    ) -> "Played":
        """The same with round i of the block."""
        recorded = {name: _put(self.health[name], value, i) for name, value in health.items()}
        return Played(_put(self.arms, arm, i), recorded, draws)


class Window(NamedTuple):
    """Which rounds a call plays: `rounds` of them from `first + offset` on.

    `first` is the first round of the block. Each round makes `draws` draws, where they can be
    repeated, and plays by the last: one in a round of the run.
    """

    first: Int[Array, ""]
    offset: Int[Array, ""]
    rounds: Int[Array, ""]
    draws: Int[Array, ""]

    @classmethod
    def of(cls, first: int, offset: int, rounds: int, draws: int = 1) -> "Window":
        """Four numbers as programs take them."""
        # Of NumPy: JAX would compile a program for the conversion, in the time of the run.
        numbers: Any = [np.int32(number) for number in (first, offset, rounds, draws)]
        return cls(*numbers)


def strongly_typed(playing: Playing) -> Playing:
    """The same without weak types: a state that gains or loses one would compile anew."""

    def strong(x: Array) -> Array:
        is_key = jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key)
        return x if is_key else lax.convert_element_type(x, x.dtype)

    return jax.tree.map(strong, playing)


class NoiseMaker(eqx.Module):
    """Draws the random numbers of a block's rounds; a module, so that equal ones share programs."""

    needs: Needs = eqx.field(static=True)
    length: int = eqx.field(static=True)

    def __call__(self, keys: Key[Array, " seeds"], first: Int[Array, ""]) -> RoundNoise:
        return noise_ahead(keys, self.needs, first, self.length)


class Beginner(eqx.Module):
    """Makes all that a group starts with; a module, so that equal ones share their program."""

    spec: Spec = eqx.field(static=True)
    measured: bool = eqx.field(static=True)

    def __call__(
        self, testbed: Testbed, policy: Policy, seeds: UInt32[Array, " seeds"]
    ) -> tuple[tuple[Any, Key[Array, " seeds"]], Playing, AnyKey]:
        first = FirstKeys.of(seeds)
        shape = self.spec.lanes

        def of_chains(keys: Key[Array, " seeds"]) -> AnyKey:
            return LaneKeys(keys=keys, settings=self.spec.layout.settings) if shape else keys[0]

        playing = Playing(
            state=policy.init(of_chains(first.agent_start), self.spec),
            diverged_at=jnp.full(shape, -1, jnp.int32),
            seen=Stats.empty(self.spec) if self.measured else None,
        )
        return settled(testbed, first, seeds), strongly_typed(playing), of_chains(first.agent)


class Player(eqx.Module):
    """Plays rounds of a block; a module, so that equal ones share their program."""

    spec: Spec = eqx.field(static=True)
    needs: Needs = eqx.field(static=True)
    repeats_draws: bool = eqx.field(static=True)

    def __call__(
        self,
        playing: Playing,
        policy: Policy,
        keys: AnyKey,
        block: Block,
        ahead: RoundNoise,
        window: Window,
    ) -> tuple[Playing, Played]:
        # Traced once: here for the shape of a draw, below for the loop.
        @functools.partial(jax.jit, inline=True)
        def drawn(policy: Policy, key: AnyKey, state: Any) -> tuple[Any, Any]:
            state = policy.draw(round_noise(key, self.needs).draw, state)
            return policy.report(state).parameters, state

        def one_round(i: Int[Array, ""], carry: tuple[Playing, Played]) -> tuple[Playing, Played]:
            (state, diverged_at, seen), record = carry
            t = window.first + i
            context, rewards, ahead_now = self._of_round((block.contexts, block.rewards, ahead), i)
            noise = completed(ahead_now, self.needs, keys, t)
            draws = record.draws
            if draws is None:
                state = policy.draw(noise.draw, state)
            else:

                def again(j: Int[Array, ""], carry: tuple[Any, Array]) -> tuple[Any, Array]:
                    theta, state = drawn(policy, round_key(keys, t + j), carry[0])
                    return state, _put(carry[1], theta, j)

                state, draws = lax.fori_loop(0, window.draws, again, (state, draws))
            arm = policy.choose(noise.choose, state, context)
            lost = (arm < 0) | (arm >= self.spec.arms)
            arm = jnp.where(lost, 0, arm)
            reward = lanes.pick(rewards, lanes.one_hot(arm, self.spec.arms))
            state = policy.update(state, context, arm, reward)
            if seen is not None:
                seen = seen.add(*models.played(self.spec, context, arm), reward)
            report = policy.report(state)
            broken = (lost | ~report.finite) & (diverged_at < 0)
            playing = Playing(state, jnp.where(broken, t + 1, diverged_at), seen)
            return playing, record.with_round(i, arm, report.health, draws)

        draw = functools.partial(drawn, policy, keys) if self.repeats_draws else None
        record = self._blank(policy, playing.state, len(block.rewards), draw)
        last = window.offset + window.rounds
        playing, record = lax.fori_loop(window.offset, last, one_round, (playing, record))
        return strongly_typed(playing), record

    def _of_round(self, arrays: Any, i: Int[Array, ""]) -> Any:
        """Round i of arrays whose first axis are the rounds of a block, for every chain."""
        chains = self.spec.layout.chains

        def one(array: Array) -> Array:
            # What settings of a sweep share is there once per seed.
            row = _row(array, i)
            return lanes.tile(row, chains // row.shape[-1]) if chains else row

        return jax.tree.map(one, arrays)

    def _blank(self, policy: Policy, state: Any, length: int, draw: Any) -> Played:
        """The record of no rounds; `draw` draws parameters, where draws are repeated."""
        report = jax.eval_shape(policy.report, state)
        draws = None
        if draw is not None:
            theta, _ = jax.eval_shape(draw, state)
            draws = jnp.zeros((REPEATED_DRAWS, *theta.shape), theta.dtype)
        return Played(
            arms=jnp.zeros((length, *self.spec.lanes), jnp.int32),
            health={
                name: jnp.zeros((length, *value.shape), value.dtype)
                for name, value in report.health.items()
            },
            draws=draws,
        )


def repeated_draws(
    policy: Policy, needs: Needs, keys: AnyKey, state: Any, draws: int, first: Int[Array, ""] | int
) -> tuple[Float[Array, "draws parameters *lanes"], Any]:
    """Draws with the data of `state`, by folds of `keys` from `first` on, and the last state."""

    def one(state: Any, i: Int[Array, ""]) -> tuple[Any, Array]:
        state = policy.draw(round_noise(fold_in(keys, first + i), needs).draw, state)
        parameters = policy.report(state).parameters
        assert parameters is not None
        return state, parameters

    state, out = lax.scan(one, state, jnp.arange(draws))
    return out, state
