"""The cost of a round does not grow, and a million float32 updates do no harm."""

import subprocess
import sys
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from feelgood.agents import LinTS
from feelgood.engine.simulation import simulate
from feelgood.numerics import lanes
from feelgood.testbeds import Linear

UPDATES = 1_000_000

Update = Callable[[jax.Array, jax.Array], jax.Array]
DIM, CHUNK, RHO = 4, 100_000, 0.01


def after_a_million(update: Update, start: float) -> tuple[np.ndarray, np.ndarray]:
    """`start` · I after a million updates, and what ρI + Σ x xᵀ is in float64 on the host."""

    @jax.jit
    def contexts(i: jax.Array) -> jax.Array:
        stretch = jnp.asarray([1.0, 0.5, 0.1, 0.03])
        return stretch * jax.random.normal(jax.random.fold_in(jax.random.key(0), i), (CHUNK, DIM))

    @jax.jit
    def learn(matrix: jax.Array, xs: jax.Array) -> jax.Array:
        return jax.lax.scan(lambda m, x: (update(m, x), None), matrix, xs)[0]

    matrix = start * jnp.eye(DIM)
    gram = RHO * np.eye(DIM)
    for i in range(UPDATES // CHUNK):
        xs = contexts(jnp.asarray(i))
        matrix = learn(matrix, xs)
        gram += np.asarray(xs, np.float64).T @ np.asarray(xs, np.float64)
    return np.asarray(matrix, np.float64), gram


def test_a_million_updates_agree_with_a_fresh_float64_factor() -> None:
    """The same contexts summed in float64 and factored once: 1e-3 relative."""
    factor, gram = after_a_million(lanes.rank_one_update, RHO**0.5)
    fresh = np.linalg.cholesky(gram)
    error = np.linalg.norm(factor - fresh) / np.linalg.norm(fresh)
    assert error < 1e-3
    # Entry by entry too, relative to the row: small directions must not drown in large ones.
    rows = np.linalg.norm(fresh, axis=1, keepdims=True)
    assert np.abs((factor - fresh) / rows).max() < 1e-3


def test_a_million_updates_of_an_inverse_root_leave_a_good_preconditioner() -> None:
    """BᵀB V = I in every direction, to 1 %: a preconditioner needs no more."""
    root, gram = after_a_million(lanes.inverse_root_update, RHO**-0.5)
    white = root @ np.linalg.cholesky(gram)
    spectrum = np.linalg.eigvalsh(white.T @ white)
    assert np.abs(spectrum - 1).max() < 0.01


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
from feelgood.agents import LinTS
from feelgood.engine.simulation import simulate
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
