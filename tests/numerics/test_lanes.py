"""The small linear algebra against numpy and scipy in float64, with and without lanes."""

import itertools
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from grids import slow_but
from scipy import linalg, stats

from feelgood.numerics import lanes
from feelgood.numerics.keys import LaneKeys, fold_in

#: float32 has a relative spacing of 1.2e-7; the problems below have condition numbers up to 1e3.
CLOSE = {"rtol": 1e-4, "atol": 1e-5}

SHAPES = [(), (2, 3)]
DIMS = [1, 5, 9]
EVERY = pytest.mark.parametrize(
    ("dim", "shape"), slow_but([(1, ()), (5, (2, 3))], itertools.product(DIMS, SHAPES))
)


def random(*shape: int) -> np.ndarray:
    return np.random.default_rng(list(shape)).normal(size=shape)


def positive_definite(dim: int, shape: tuple[int, ...]) -> np.ndarray:
    """[*shape, dim, dim]."""
    half = random(*shape, dim, dim)
    return half @ np.swapaxes(half, -1, -2) + 0.1 * np.eye(dim)


def lead(array: np.ndarray, axes: int) -> jax.Array:
    """The last `axes` axes first: from numpy's layout to that of the lanes."""
    return jnp.asarray(np.moveaxis(array, range(-axes, 0), range(axes)), jnp.float32)


def trail(array: jax.Array, axes: int) -> np.ndarray:
    """The other way round."""
    return np.moveaxis(np.asarray(array, np.float64), range(axes), range(-axes, 0))


@EVERY
def test_dot_matvec_and_outer(dim: int, shape: tuple[int, ...]) -> None:
    matrix, a, b = random(*shape, dim, dim), random(*shape, dim), random(*shape, dim) + 1
    left, right, square = lead(a, 1), lead(b, 1), lead(matrix, 2)
    np.testing.assert_allclose(lanes.dot(left, right), (a * b).sum(-1), **CLOSE)
    product = trail(lanes.matvec(square, left), 1)
    np.testing.assert_allclose(product, np.einsum("...ij,...j->...i", matrix, a), **CLOSE)
    np.testing.assert_allclose(
        trail(lanes.outer(left, right), 2), a[..., :, None] * b[..., None, :], **CLOSE
    )


@EVERY
def test_triangular_solves(dim: int, shape: tuple[int, ...]) -> None:
    factor = np.linalg.cholesky(positive_definite(dim, shape))
    rhs = random(*shape, dim)
    lower = trail(lanes.solve_lower(lead(factor, 2), lead(rhs, 1)), 1)
    upper = trail(lanes.solve_upper(lead(factor, 2), lead(rhs, 1)), 1)
    for where in np.ndindex(*shape):
        L, b = factor[where], rhs[where]
        np.testing.assert_allclose(lower[where], linalg.solve_triangular(L, b, lower=True), **CLOSE)
        np.testing.assert_allclose(
            upper[where], linalg.solve_triangular(L, b, lower=True, trans="T"), **CLOSE
        )


@EVERY
def test_cholesky(dim: int, shape: tuple[int, ...]) -> None:
    matrix = positive_definite(dim, shape)
    factor = trail(lanes.cholesky(lead(matrix, 2)), 2)
    np.testing.assert_allclose(factor, np.linalg.cholesky(matrix), **CLOSE)


@pytest.mark.parametrize("ratio", [0.0, 1e-9, 1e-7, 1e-5])
def test_cholesky_of_what_is_singular_but_for_rounding(ratio: float) -> None:
    """ρI + Σ x xᵀ of 300 rows of 30 numbers of unlike size, with three directions, in 50 cases.

    All factors are finite. What a raised pivot leaves of its column is at most √(d ε A_ii A_jj),
    which bounds L Lᵀ − A here. With ρ above d ε A_kk only the usual rounding is left.
    """
    dim, cases = 30, 50
    rng = np.random.default_rng(5)
    rows = 1.0 + 0.1 * rng.normal(size=(cases, 300, 2)) @ rng.normal(size=(cases, 2, dim))
    rows = (rows * 10.0 ** rng.uniform(-3, 3, size=dim)).astype(np.float32)
    gram = np.einsum("cri,crj->cij", rows, rows)
    scale = np.sqrt(np.einsum("cii->ci", gram))
    matrix = gram + ratio * np.eye(dim, dtype=np.float32) * scale[:, :, None] ** 2
    factor = trail(lanes.cholesky(lead(matrix, 2)), 2)
    assert np.isfinite(factor).all()
    assert (np.einsum("cii->ci", factor) > 0).all()
    off = np.abs(factor @ np.swapaxes(factor, 1, 2) - matrix)
    rounding = dim * np.finfo(np.float32).eps
    bound = rounding if ratio > rounding else np.sqrt(rounding)
    assert (off <= bound * scale[:, :, None] * scale[:, None, :]).all()


@EVERY
def test_rank_one_update(dim: int, shape: tuple[int, ...]) -> None:
    matrix = positive_definite(dim, shape)
    x = random(*shape, dim)
    updated = lanes.rank_one_update(lead(np.linalg.cholesky(matrix), 2), lead(x, 1))
    fresh = np.linalg.cholesky(matrix + x[..., :, None] * x[..., None, :])
    np.testing.assert_allclose(trail(updated, 2), fresh, **CLOSE)
    above = np.triu_indices(dim, 1)
    assert np.all(np.asarray(updated)[above] == 0), "the factor must stay lower triangular"


@pytest.mark.slow
def test_rank_one_update_compiles_in_linear_time() -> None:
    """Twice the dimensions compile in about twice the time; with shrinking slices, in 50 times."""

    def seconds(dim: int) -> float:
        shapes = [jax.ShapeDtypeStruct(s, jnp.float32) for s in ((dim, dim, 5), (dim, 5))]
        lowered = jax.jit(lanes.rank_one_update).lower(*shapes)
        start = time.perf_counter()
        lowered.compile()
        return time.perf_counter() - start

    assert seconds(16) < 12 * seconds(8)


@EVERY
def test_inverse_root_update(dim: int, shape: tuple[int, ...]) -> None:
    matrix = positive_definite(dim, shape)
    x = random(*shape, dim)
    root = np.linalg.inv(np.linalg.cholesky(matrix))
    updated = trail(lanes.inverse_root_update(lead(root, 2), lead(x, 1)), 2)
    fresh = np.linalg.inv(matrix + x[..., :, None] * x[..., None, :])
    np.testing.assert_allclose(np.swapaxes(updated, -1, -2) @ updated, fresh, **CLOSE)


def test_one_hot_and_pick() -> None:
    index = jnp.asarray([2, 0])
    hot = lanes.one_hot(index, 3)
    np.testing.assert_array_equal(hot, [[0, 1], [0, 0], [1, 0]])
    np.testing.assert_array_equal(lanes.pick(jnp.arange(6.0).reshape(3, 2), hot), [4, 1])
    np.testing.assert_array_equal(lanes.one_hot(jnp.asarray(1), 3), [0, 1, 0])


DRAWS = {
    "normal": lambda key: lanes.normal(key, 6),
    "uniform": lambda key: lanes.uniform(key, 6),
    "randint": lambda key: lanes.randint(key, 6, 1000),
}


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
def test_draws_of_a_seed_do_not_depend_on_the_batch(draw) -> None:
    keys = jax.random.split(jax.random.key(3), 5)
    together = np.asarray(jax.jit(draw)(keys))
    assert together.shape == (6, 5)
    for i, key in enumerate(keys):
        np.testing.assert_array_equal(together[:, i], jax.jit(draw)(key))
    np.testing.assert_array_equal(together[:, 1:3], jax.jit(draw)(keys[1:3]))
    assert len(np.unique(together, axis=1).T) == 5, "seeds must differ"


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
def test_settings_share_the_noise_of_their_seed(draw) -> None:
    keys = jax.random.split(jax.random.key(3), 2)
    drawn = np.asarray(draw(LaneKeys(keys=keys, settings=3)))
    np.testing.assert_array_equal(drawn, np.tile(np.asarray(draw(keys)), 3))
    each = LaneKeys(keys=keys, settings=3).each()
    np.testing.assert_array_equal(
        jax.random.key_data(each), jax.random.key_data(jnp.concatenate([keys] * 3))
    )


def test_fold_in_is_that_of_jax_for_every_kind_of_key() -> None:
    keys = jax.random.split(jax.random.key(3), 2)
    expected = [jax.random.key_data(jax.random.fold_in(key, 9)) for key in keys]
    one = fold_in(keys[0], 9)
    several = fold_in(keys, jnp.asarray(9))
    laned = fold_in(LaneKeys(keys=keys, settings=2), 9)
    assert isinstance(laned, LaneKeys) and laned.settings == 2
    assert not isinstance(one, LaneKeys) and not isinstance(several, LaneKeys)
    np.testing.assert_array_equal(jax.random.key_data(one), expected[0])
    np.testing.assert_array_equal(jax.random.key_data(several), expected)
    np.testing.assert_array_equal(jax.random.key_data(laned.keys), expected)


def test_draws_have_the_law_they_say() -> None:
    """Kolmogorov-Smirnov at 1e-6 each."""
    keys = jax.random.split(jax.random.key(0), 1000)
    for name, law in (("normal", stats.norm.cdf), ("uniform", stats.uniform.cdf)):
        values = np.asarray(DRAWS[name](keys), np.float64).ravel()
        assert stats.kstest(values, law).pvalue > 1e-6, name
    counts = np.bincount(np.asarray(lanes.randint(keys, 6, 7)).ravel(), minlength=7)
    assert len(counts) == 7
    assert stats.chisquare(counts).pvalue > 1e-6
