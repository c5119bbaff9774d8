"""The cost of a round does not grow, and a million float32 updates do no harm."""

import subprocess
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from feelgood import lanes
from feelgood.policies import LinTS
from feelgood.simulate import simulate
from feelgood.testbeds import Linear

UPDATES = 1_000_000


def test_a_million_updates_agree_with_a_fresh_float64_factor() -> None:
    """The same contexts summed in float64 on the host and factored once: 1e-3 relative."""
    dim, chunk, rho = 4, 100_000, 0.01

    @jax.jit
    def contexts(i: jax.Array) -> jax.Array:
        stretch = jnp.asarray([1.0, 0.5, 0.1, 0.03])
        return stretch * jax.random.normal(jax.random.fold_in(jax.random.key(0), i), (chunk, dim))

    @jax.jit
    def learn(factor: jax.Array, xs: jax.Array) -> jax.Array:
        return jax.lax.scan(lambda f, x: (lanes.rank_one_update(f, x), None), factor, xs)[0]

    factor = jnp.sqrt(rho) * jnp.eye(dim)
    gram = rho * np.eye(dim)
    for i in range(UPDATES // chunk):
        xs = contexts(jnp.asarray(i))
        factor = learn(factor, xs)
        gram += np.asarray(xs, np.float64).T @ np.asarray(xs, np.float64)
    fresh = np.linalg.cholesky(gram)
    error = np.linalg.norm(np.asarray(factor, np.float64) - fresh) / np.linalg.norm(fresh)
    assert error < 1e-3
    # Entry by entry too, relative to the row: small directions must not drown in large ones.
    rows = np.linalg.norm(fresh, axis=1, keepdims=True)
    assert np.abs((np.asarray(factor) - fresh) / rows).max() < 1e-3


@pytest.mark.slow
def test_ten_times_the_rounds_take_at_most_twelve_times_as_long() -> None:
    """In seconds of processor time, which other processes hardly disturb."""
    testbed = Linear()

    def seconds(rounds: int) -> float:
        start = time.process_time()
        simulate(testbed, LinTS(), rounds=rounds, seeds=range(10), workers=1)
        return time.process_time() - start

    seconds(5_000)  # compiles; the programs do not depend on the rounds from one block on
    short = min(seconds(100_000) for _ in range(2))
    assert seconds(1_000_000) <= 12 * short


PEAK = """
import resource, sys
from feelgood.policies import LinTS
from feelgood.simulate import simulate
from feelgood.testbeds import Linear
simulate(Linear(), LinTS(), rounds=int(sys.argv[1]), seeds=range(10), workers=1)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there is no peak memory to ask for")
def test_memory_is_flat() -> None:
    """Peak memory of the whole process: ten times the rounds, at most a tenth more."""

    def peak(rounds: int) -> int:
        command = [sys.executable, "-c", PEAK, str(rounds)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return int(done.stdout)

    assert peak(1_000_000) < 1.1 * peak(100_000)
