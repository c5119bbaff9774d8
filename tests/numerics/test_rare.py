"""Work that is seldom needed: done where it is, or left out and told."""

import jax
import jax.numpy as jnp
import pytest

from feelgood.numerics.rare import left_out, rarely


def step(x: jax.Array) -> jax.Array:
    once = rarely(x > 0.0, lambda v: v + 1.0, x)
    return rarely(once > 10.0, lambda v: 2.0 * v, once)


def test_it_is_done_where_it_is_needed() -> None:
    found = (
        jax.jit(step)(jnp.asarray(-3.0)),
        jax.jit(step)(jnp.asarray(3.0)),
        step(jnp.asarray(9.5)),
    )
    assert [float(x) for x in found] == [-3.0, 4.0, 21.0]


def test_it_is_left_out_and_told() -> None:
    def sparing(x: jax.Array) -> tuple[jax.Array, jax.Array]:
        with left_out() as needed:
            out = step(x)
        return out, jnp.stack(needed)

    for x, told in ((-3.0, [False, False]), (3.0, [True, False]), (11.0, [True, True])):
        value, needed = jax.jit(sparing)(jnp.asarray(x))
        assert float(value) == x and needed.tolist() == told


def test_an_error_ends_the_leaving_out() -> None:
    with pytest.raises(ValueError, match="here"), left_out():
        raise ValueError("here")
    assert float(step(jnp.asarray(3.0))) == 4.0
