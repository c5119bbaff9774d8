"""Our generator gives the numbers of JAX's own, whatever is drawn and however."""

import functools
import itertools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from grids import covering, slow_but
from jaxtyping import Array

from feelgood.numerics import generator

SEEDS = [0, 7, 2**31, 2**32 - 1]
DRAWS: dict[str, Callable[[Array], Array]] = {
    "normals": lambda k: jax.random.normal(k, (3, 5)),
    "one normal": jax.random.normal,
    "uniforms": lambda k: jax.random.uniform(k, (7,)),
    "integers": lambda k: jax.random.randint(k, (9,), 0, 1000),
    "coins": lambda k: jax.random.bernoulli(k, 0.3, (11,)),
    "a permutation": lambda k: jax.random.permutation(k, 50),
    "words": lambda k: jax.random.bits(k, (5,)),
    "bytes": lambda k: jax.random.bits(k, (5,), jnp.uint8),
    "keys": lambda k: jax.random.key_data(jax.random.split(k, (3, 2))),
    "a key with data": lambda k: jax.random.key_data(jax.random.fold_in(k, 2**31 - 1)),
    "many rounds": lambda k: jax.vmap(lambda t: jax.random.normal(jax.random.fold_in(k, t), (4,)))(
        jnp.arange(100)
    ),
}


#: XLA's erf⁻¹ in float32 is a logarithm, a polynomial of degree 8 and two products: some 20
#: roundings of half a unit in the last place. Compilers may round otherwise in the middle of an
#: array than at its end, so two evaluations of it may differ by twice those 10 units.
ROUNDINGS = 20


NORMALS = pytest.mark.parametrize(
    ("keys", "count"),
    slow_but(
        [((), 5), ((3,), 64), ((2, 700), 3000)],
        itertools.product(((), (3,), (2, 700)), (1, 4, 5, 63, 64, 3000)),
    ),
)


def same(ours: np.ndarray, theirs: np.ndarray) -> None:
    """Whole numbers bit for bit, others up to the roundings of erf⁻¹."""
    if np.issubdtype(theirs.dtype, np.floating):
        np.testing.assert_array_max_ulp(ours, theirs, maxulp=ROUNDINGS)
    else:
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(
    ("how", "what"), covering(itertools.product(("one by one", "vmapped"), DRAWS))
)
def test_the_numbers_are_those_of_jax(how: str, what: str) -> None:
    draw, together = DRAWS[what], how == "vmapped"

    def drawn(key: Callable[[Array], Array]) -> list[np.ndarray]:
        seeds = jnp.asarray(np.array(SEEDS, np.uint32))
        if together:
            return list(np.asarray(jax.jit(jax.vmap(lambda s: draw(key(s))))(seeds)))
        return [np.asarray(draw(key(s))) for s in seeds]

    for ours, theirs in zip(drawn(generator.key), drawn(jax.random.key), strict=True):
        same(ours, theirs)


@NORMALS
def test_our_normals_are_those_of_jax(count: int, keys: tuple[int, ...]) -> None:
    """Few from many keys are drawn in pieces, which must not change a number."""

    def drawn(key: Array, draw: Callable[[Array, int], Array]) -> np.ndarray:
        each = key if keys == () else jax.random.split(key, keys)
        function = functools.partial(draw, count=count)
        for _ in keys:
            function = jax.vmap(function)
        return np.asarray(jax.jit(function)(each))

    theirs = drawn(jax.random.key(3), lambda key, count: jax.random.normal(key, (count,)))
    same(drawn(generator.key(3), generator.normals), theirs)
    same(drawn(jax.random.key(3), generator.normals), theirs)


@NORMALS
def test_our_normals_are_made_of_the_bits_of_jax(
    monkeypatch: pytest.MonkeyPatch, count: int, keys: tuple[int, ...]
) -> None:
    """Of the upper 23 of 32, exactly, whatever erf⁻¹ rounds."""
    monkeypatch.setattr(generator, "_to_normal", lambda bits: (bits >> 9).astype(jnp.float32))
    generator._normals.cache_clear()
    try:
        each = [generator.key(3), jax.random.key(3)]
        if keys:
            each = [jax.random.split(key, keys) for key in each]
        ours = functools.partial(generator.normals, count=count)
        theirs = functools.partial(jax.random.bits, shape=(count,))
        for _ in keys:
            ours, theirs = jax.vmap(ours), jax.vmap(theirs)
        np.testing.assert_array_equal(jax.jit(ours)(each[0]), jax.jit(theirs)(each[1]) >> 9)
    finally:
        generator._normals.cache_clear()


def test_known_answers() -> None:
    """Random123's known-answer vectors for Threefry-2x32 with 20 rounds."""
    ones = np.uint32(0xFFFFFFFF)
    vectors = {
        (0, 0, 0, 0): (0x6B200159, 0x99BA4EFE),
        (ones, ones, ones, ones): (0x1CB996FC, 0xBB002BE7),
        (0x13198A2E, 0x03707344, 0x243F6A88, 0x85A308D3): (0xC4923A9C, 0x483DF7A0),
    }
    for (k0, k1, c0, c1), expected in vectors.items():
        words = [jnp.asarray(np.uint32(w)) for w in (k0, k1, c0, c1)]
        got = generator.threefry((words[0], words[1]), (words[2], words[3]))
        assert tuple(int(w) for w in got) == expected


@pytest.mark.parametrize("first", [0, 7])
def test_normals_may_be_drawn_from_any_of_them_on(first: int) -> None:
    keys = jax.random.split(generator.key(3), 2)
    all_ = jax.vmap(lambda key: generator.normals(key, 20))(keys)
    some = jax.vmap(lambda key: generator.normals_from(key, jnp.asarray(first), 5))(keys)
    same(np.asarray(some), np.asarray(all_[:, first : first + 5]))
