"""The random numbers of a round, as `Policy.needs` asks for them."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from feelgood.core.policy import Amount, Needs
from feelgood.numerics import lanes
from feelgood.numerics.keys import AnyKey, fold_all, round_key, shared_out


class RoundNoise(NamedTuple):
    """What the two calls of a round get: a key, standard normals, or None."""

    draw: Any
    choose: Any


def _numbers(key: AnyKey | None, amount: Amount) -> Any:
    return lanes.normal(key, amount) if isinstance(amount, int) and key is not None else key


def round_noise(key: AnyKey, needs: Needs) -> RoundNoise:
    """The random numbers of one round from its key.

    **Example:**

    >>> import jax
    >>> import feelgood
    >>> from feelgood.numerics.noise import round_noise
    >>> agent, spec = feelgood.AGENTS["lints"].build(), feelgood.Spec(arms=3, dim=2)
    >>> round_noise(jax.random.key(0), agent.needs(spec)).draw.shape
    (15,)
    """
    keys = shared_out(key, needs)
    return RoundNoise(_numbers(keys.draw, needs.draw), _numbers(keys.choose, needs.choose))


def noise_ahead(
    stream: Key[Array, " seeds"], needs: Needs, first: Int[Array, ""], length: int
) -> RoundNoise:
    """The numbers of `length` rounds from `first` on, `[length, amount, seeds]`.

    Where a call takes a key or nothing, there is None.
    """
    each = fold_all(stream, first + 1 + jnp.arange(length))

    def ahead(place: int) -> Float[Array, "length amount seeds"] | None:
        amount = needs[place]
        if amount in {"key", 0}:
            return None

        def drawn(key: Key[Array, ""]) -> Any:
            return _numbers(shared_out(key, needs)[place], amount)

        return jnp.moveaxis(jax.vmap(jax.vmap(drawn))(each), 0, -1)

    return RoundNoise(ahead(0), ahead(1))


def completed(ahead: RoundNoise, needs: Needs, stream: AnyKey, t: Int[Array, ""]) -> RoundNoise:
    """One round's numbers drawn ahead, with the keys of those calls that take one."""
    if "key" not in needs:
        return ahead
    keys = shared_out(round_key(stream, t), needs)
    return RoundNoise(
        keys.draw if needs.draw == "key" else ahead.draw,
        keys.choose if needs.choose == "key" else ahead.choose,
    )
