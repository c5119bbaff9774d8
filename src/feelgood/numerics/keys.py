"""The keys that all random numbers of a run come from.

Seed s has three streams, `fold_in(key(s), stream)`: one for the environment, one for the agent,
and one for chains that are started beside a run. The environment's and the agent's are folded
with the round. So contexts and rewards depend on the testbed and the seed alone. Every agent meets
the same ones, and seed 7 alone gives the same as seed 7 among 100.

An agent's stream k gives the start `fold_in(k, 0)` and round t (from 0) `fold_in(k, t + 1)`. That
key goes to the call of the round that takes random numbers; where `draw` and `choose` both do,
they get its folds with 0 and 1.
"""

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, Key, UInt32

from feelgood.core.policy import Needs
from feelgood.numerics import generator

ENVIRONMENT, AGENT, CHAINS = 0, 1, 2


class LaneKeys(eqx.Module):
    """Keys of `seeds`, each serving `settings` chains: chain `g * seeds + n` uses seed `n`.

    Settings of a sweep share the noise of their seed. That makes them paired comparisons, and the
    noise is drawn once per seed and not once per chain.
    """

    keys: Key[Array, " seeds"]
    settings: int = eqx.field(static=True)

    def each(self) -> Key[Array, " lanes"]:
        """One key per chain."""
        return jnp.tile(self.keys, self.settings)


AnyKey: TypeAlias = Key[Array, "..."] | LaneKeys


def fold_in(key: AnyKey, data: Int[Array, ""] | int) -> AnyKey:
    """`jax.random.fold_in` for a key, an array of keys or `LaneKeys`."""
    if isinstance(key, LaneKeys):
        return LaneKeys(keys=_fold_each(key.keys, data), settings=key.settings)
    return _fold_each(key, data)


def _fold_each(keys: Key[Array, "..."], data: Int[Array, ""] | int) -> Key[Array, "..."]:
    if keys.ndim == 0:
        return jax.random.fold_in(keys, data)
    return jax.vmap(lambda k: jax.random.fold_in(k, data))(keys)


def fold_all(keys: Key[Array, " seeds"], data: Int[Array, " count"]) -> Key[Array, "seeds count"]:
    """Every key folded with every number."""
    return jax.vmap(jax.vmap(jax.random.fold_in, (None, 0)), (0, None))(keys, data)


def seed_array(seeds: Sequence[int]) -> UInt32[Array, " seeds"]:
    """Seeds as the programs take them."""
    return jnp.asarray(np.asarray(seeds, np.uint32))


def seed_keys(seeds: UInt32[Array, " seeds"], stream: int) -> Key[Array, " seeds"]:
    """One key per seed, for one of the streams."""
    return jax.vmap(lambda s: jax.random.fold_in(generator.key(s), stream))(seeds)


class FirstKeys(NamedTuple):
    """What the environment's and the agent's streams of every seed begin with."""

    fixed: Key[Array, " seeds"]
    rounds: Key[Array, " seeds"]
    agent: Key[Array, " seeds"]
    agent_start: Key[Array, " seeds"]

    @classmethod
    def of(cls, seeds: UInt32[Array, " seeds"]) -> "FirstKeys":
        """Both streams together: each derivation by itself would be compiled again."""
        streams = fold_all(jax.vmap(generator.key)(seeds), jnp.arange(2))
        folded = jax.vmap(fold_all, (0, None))(streams, jnp.arange(2))
        return cls(
            fixed=folded[:, ENVIRONMENT, 0],
            rounds=folded[:, ENVIRONMENT, 1],
            agent=streams[:, AGENT],
            agent_start=folded[:, AGENT, 0],
        )


def start_key(stream: AnyKey) -> AnyKey:
    """The key of `Policy.init`."""
    return fold_in(stream, 0)


def round_key(stream: AnyKey, t: Int[Array, ""] | int) -> AnyKey:
    """The key of round `t`, counted from 0."""
    return fold_in(stream, t + 1)


class RoundKeys(NamedTuple):
    """The keys of the two calls of a round; None for one that takes no random numbers."""

    draw: AnyKey | None
    choose: AnyKey | None


def shared_out(key: AnyKey, needs: Needs) -> RoundKeys:
    """A round's key for those calls that take random numbers."""
    if needs.draw and needs.choose:
        return RoundKeys(fold_in(key, 0), fold_in(key, 1))
    return RoundKeys(key if needs.draw else None, key if needs.choose else None)
