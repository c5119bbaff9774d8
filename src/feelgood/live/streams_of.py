"""The random streams of a live bandit's chains."""

import os

import jax
import jax.numpy as jnp
import numpy as np

from feelgood.engine.compiling import in_own_precision
from feelgood.numerics.generator import THREEFRY
from feelgood.numerics.keys import AGENT, CHAINS, fold_all, seed_array, seed_keys


@in_own_precision
def first_streams(seed: int, members: int) -> np.ndarray:
    """The words of one key per chain.

    One chain has the stream of the simulated agent; several have folds of the stream for chains
    beside a run.
    """
    if members == 1:
        keys = seed_keys(seed_array([seed]), AGENT)
    else:
        keys = fold_all(seed_keys(seed_array([seed]), CHAINS), jnp.arange(members))[0]
    return np.asarray(jax.random.key_data(keys))


@in_own_precision
def forked(streams: np.ndarray) -> np.ndarray:
    """Streams that nobody else has: folds with a number from the system."""
    number = int.from_bytes(os.urandom(4), "little")
    keys = jax.random.wrap_key_data(jnp.asarray(streams), impl=THREEFRY)
    folded = jax.vmap(lambda key: jax.random.fold_in(key, jnp.uint32(number)))(keys)
    return np.asarray(jax.random.key_data(folded))
