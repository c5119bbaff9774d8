"""Small dense mathematics for many chains at once: mathematical axes lead, chains trail.

Agents are written once, for arrays whose *leading* axes carry the mathematics (arms, dimensions)
and whose *trailing* axes, if any, are **lanes**: independent chains (seeds × settings). With no
lanes the same code makes one live decision; with one lane axis it is a whole batch, laid out so
that the compiler vectorises across chains. Products over the tiny mathematical axes are written
out, which on CPU beats batched small matrix products and batched Cholesky calls several times
over.

Shapes are written `[dim, *lanes]` in the docstrings.
"""

from collections.abc import Callable
from typing import TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int, Num

from feelgood.numerics import generator
from feelgood.numerics.keys import AnyKey, LaneKeys


class Unbatched(eqx.Module):
    """Part of the state of a policy written for one chain that is the same in all its chains.

    The engine keeps one copy when it lifts the policy: a branch on it stays a branch.
    """

    value: Num[Array, "..."]


def tile(x: Num[Array, "..."], settings: int) -> Num[Array, "..."]:
    """Repeat the last axis (seeds) once per setting."""
    return x if settings == 1 else jnp.concatenate([x] * settings, axis=-1)


def for_chains(x: Num[Array, "*any seeds"], lanes: tuple[int, ...]) -> Num[Array, "..."]:
    """The same for every chain, where settings share what their seed has."""
    return tile(x, lanes[0] // x.shape[-1]) if lanes else x


def _draw(key: AnyKey, draw: Callable[[Array], Array]) -> Num[Array, "count *lanes"]:
    if isinstance(key, LaneKeys):
        return tile(_draw(key.keys, draw), key.settings)
    if key.ndim == 0:
        return draw(key)
    # The barriers keep the transposition out of the generator's loop: fused, it is three times
    # slower on CPU.
    drawn = lax.optimization_barrier(jax.vmap(draw)(key))
    return lax.optimization_barrier(drawn.T)


def normal(key: AnyKey, count: int) -> Float[Array, "count *lanes"]:
    """`count` standard normals per chain, as one flat block."""
    return _draw(key, lambda k: generator.normals(k, count))


def uniform(key: AnyKey, count: int) -> Float[Array, "count *lanes"]:
    """`count` uniforms in [0, 1) per chain, as one flat block."""
    return _draw(key, lambda k: jax.random.uniform(k, (count,)))


def normal_by_seed(key: AnyKey, count: int) -> Float[Array, "count *seeds"]:
    """As `normal`, once for all settings that share a seed."""
    return normal(key.keys if isinstance(key, LaneKeys) else key, count)


def uniform_by_seed(key: AnyKey, count: int) -> Float[Array, "count *seeds"]:
    """As `uniform`, once for all settings that share a seed."""
    return uniform(key.keys if isinstance(key, LaneKeys) else key, count)


def uniform_rows(key: AnyKey, count: int) -> Float[Array, "*lanes count"]:
    """`count` uniforms in [0, 1) per chain, chains first. The first of many are those of few."""
    if isinstance(key, LaneKeys):
        return jnp.concatenate([uniform_rows(key.keys, count)] * key.settings)
    if key.ndim == 0:
        return jax.random.uniform(key, (count,))
    return jax.vmap(lambda k: jax.random.uniform(k, (count,)))(key)


def randint(key: AnyKey, count: int, maxval: Int[Array, ""] | int) -> Int[Array, "count *lanes"]:
    """`count` integers in [0, maxval) per chain."""
    return _draw(key, lambda k: jax.random.randint(k, (count,), 0, maxval))


#: Up to so many terms a sum is written out; the compiler takes seconds for thousands of terms.
#: A longer one is a reduction, which adds in another order. Over arms, where all terms but one are
#: 0, the order does not matter.
WRITTEN_OUT_TERMS, WRITTEN_OUT_ARMS = 1024, 64


def dot(a: Float[Array, "dim ..."], b: Float[Array, "dim ..."]) -> Float[Array, "..."]:
    """Σ_i a_i b_i over the leading axis, written out unless it is long."""
    if a.shape[0] > WRITTEN_OUT_TERMS:
        return jnp.sum(a * b, axis=0)
    total = a[0] * b[0]
    for i in range(1, a.shape[0]):
        total = total + a[i] * b[i]
    return total


def matvec(
    matrix: Float[Array, "dim dim ..."], vector: Float[Array, "dim ..."]
) -> Float[Array, "dim ..."]:
    """(A v)_i = Σ_j A_ij v_j for a symmetric or general A stored as [i, j, ...]."""
    if vector.shape[0] > WRITTEN_OUT_TERMS:
        return jnp.sum(matrix * vector, axis=1)
    total = matrix[:, 0] * vector[0]
    for j in range(1, vector.shape[0]):
        total = total + matrix[:, j] * vector[j]
    return total


def matmul(
    left: Float[Array, "rows inner ..."], right: Float[Array, "inner columns ..."]
) -> Float[Array, "rows columns ..."]:
    """A B, written out unless it is long."""
    if right.shape[0] > WRITTEN_OUT_ARMS:
        return jnp.einsum("ij...,jk...->ik...", left, right, precision=lax.Precision.HIGHEST)
    total = outer(left[:, 0], right[0])
    for j in range(1, right.shape[0]):
        total = total + outer(left[:, j], right[j])
    return total


def outer(a: Float[Array, "dim ..."], b: Float[Array, "dim ..."]) -> Float[Array, "dim dim ..."]:
    """a bᵀ, stored as [i, j, ...]."""
    return a[:, None] * b[None, :]


#: Up to this dimension triangular algorithms are written out; above it they are loops, because a
#: program grows with the square of what is written out.
WRITTEN_OUT = 6


def _triangular(
    factor: Float[Array, "dim dim ..."], rhs: Float[Array, "dim ..."], transpose: bool
) -> Float[Array, "dim ..."]:
    """L⁻¹ b or L⁻ᵀ b, by one column of the triangle after the other.

    The library for linear algebra is not used: on CPU its batched solve waits for threads of the
    pool that runs it. Two programs at once could wait for each other for ever.
    """
    n = rhs.shape[0]
    batch = jnp.broadcast_shapes(factor.shape[2:], rhs.shape[1:])

    def one(rest: Array, step: tuple[Array, Array]) -> tuple[Array, Array]:
        k, column = step
        diagonal = lax.dynamic_index_in_dim(column, k, 0, keepdims=False)
        solved = lax.dynamic_index_in_dim(rest, k, 0, keepdims=False) / diagonal
        return rest - column * solved, solved

    columns = factor if transpose else jnp.moveaxis(factor, 1, 0)
    start = jnp.broadcast_to(rhs, (n, *batch))
    return lax.scan(one, start, (jnp.arange(n), columns), reverse=transpose)[1]


def solve_lower(
    factor: Float[Array, "dim dim ..."], rhs: Float[Array, "dim ..."]
) -> Float[Array, "dim ..."]:
    """L⁻¹ b by forward substitution, column by column."""
    if rhs.shape[0] > WRITTEN_OUT:
        return _triangular(factor, rhs, transpose=False)
    out: list[Array] = []
    rest, inverse = rhs, _inverse_diagonal(factor)
    for j in range(rhs.shape[0]):
        out.append(rest[0] * inverse[j])
        rest = rest[1:] - factor[j + 1 :, j] * out[j]
    return jnp.stack(out)


def _inverse_diagonal(factor: Float[Array, "dim dim ..."]) -> Float[Array, "dim ..."]:
    """1/L_jj. All divisions at once: each by itself would be a kernel of its own."""
    diagonal = jnp.stack([factor[j, j] for j in range(factor.shape[0])])
    return lax.optimization_barrier(1.0 / diagonal)


def solve_upper(
    factor: Float[Array, "dim dim ..."], rhs: Float[Array, "dim ..."]
) -> Float[Array, "dim ..."]:
    """L⁻ᵀ b by back substitution; `factor` is the lower factor L."""
    if rhs.shape[0] > WRITTEN_OUT:
        return _triangular(factor, rhs, transpose=True)
    out: list[Array] = []
    rest, inverse = rhs, _inverse_diagonal(factor)
    for j in reversed(range(rhs.shape[0])):
        out.append(rest[j] * inverse[j])
        rest = rest[:j] - factor[j, :j] * out[-1]
    return jnp.stack(out[::-1])


def cholesky(matrix: Float[Array, "dim dim ..."]) -> Float[Array, "dim dim ..."]:
    """The lower factor L with L Lᵀ = A, by one column after the other.

    d³ work, for rare use. The library is not called for the reason that `_triangular` gives.

    A pivot has a rounding error of up to d ε A_kk. Where A is nearly singular, it may be less than
    that, or negative: then it is raised to that. Nor may the square of an entry below it be larger
    than what is left of the diagonal there, as in every positive definite A. So L is finite
    whatever the rounding of A, and is the usual factor wherever pivots are above their rounding.

    Higham, "Accuracy and Stability of Numerical Algorithms", 2002, theorems 10.3 and 10.7.
    """
    n = matrix.shape[0]
    rows = jnp.arange(n).reshape((n,) + (1,) * (matrix.ndim - 2))
    least = n * jnp.finfo(matrix.dtype).eps * _diagonal(matrix)

    def one(rest: Array, k: Array) -> tuple[Array, Array]:
        column = lax.dynamic_index_in_dim(rest, k, 1, keepdims=False)
        pivot = lax.dynamic_index_in_dim(column, k, 0, keepdims=False)
        pivot = jnp.maximum(pivot, lax.dynamic_index_in_dim(least, k, 0, keepdims=False))
        most = jnp.sqrt(jnp.maximum(_diagonal(rest), 0.0))
        below = jnp.clip(column * lax.rsqrt(pivot), -most, most)
        column = jnp.where(rows > k, below, jnp.where(rows == k, pivot * lax.rsqrt(pivot), 0.0))
        return rest - outer(column, column), column

    _, columns = lax.scan(one, matrix, jnp.arange(n))
    return jnp.moveaxis(columns, 0, 1)


def _diagonal(matrix: Float[Array, "dim dim ..."]) -> Float[Array, "dim ..."]:
    """A_kk."""
    n = matrix.shape[0]
    return matrix.reshape(n * n, *matrix.shape[2:])[:: n + 1]


def rank_one_update(
    factor: Float[Array, "rows dim ..."], vector: Float[Array, "rows ..."]
) -> Float[Array, "rows dim ..."]:
    """The lower factor L' with L' L'ᵀ = L Lᵀ + x xᵀ, by one Givens rotation per column.

    Golub and Van Loan, Matrix Computations, §6.5.4: d² work, backward stable. `factor` may have
    more rows than columns: a row w = L⁻¹b below L, with r below x, becomes L'⁻¹(b + r x).
    """
    n = factor.shape[1]
    if n > WRITTEN_OUT:
        return _rank_one_loop(factor, vector)
    return rank_one_from_solution(factor, vector, solve_lower(factor[:n], vector[:n]))


def rank_one_from_solution(
    factor: Float[Array, "rows dim ..."],
    vector: Float[Array, "rows ..."],
    white: Float[Array, "dim ..."],
) -> Float[Array, "rows dim ..."]:
    """The same where p = L⁻¹x is known: all rotations at once, written out.

    With t_j = 1 + Σ_{i≤j} p_i², the rotation of column j has sine p_j/√t_j and cosine
    √(t_{j−1}/t_j). It is applied to the vector (x − Σ_{i<j} p_i L_i)/√t_{j−1}.
    Gill, Golub, Murray and Saunders, "Methods for modifying matrix factorizations", 1974.
    """
    n = factor.shape[1]
    total = [jnp.ones_like(white[0])]
    for j in range(n):
        total.append(total[j] + white[j] * white[j])
    inverse = lax.rsqrt(jnp.stack(total))
    sine = white * inverse[1:]
    half = sine / (1.0 + jnp.stack(total[:-1]) * inverse[:-1] * inverse[1:])
    columns: list[Array] = []
    rest = vector
    for j in range(n):
        column = factor[j:, j]
        turned = _rotated(column, rest * inverse[j], sine[j], half[j])
        columns.append(jnp.concatenate([jnp.zeros((j, *turned.shape[1:])), turned]))
        rest = rest[1:] - white[j] * column[1:]
    return jnp.stack(columns, axis=1)


def _rotated(
    column: Float[Array, "rows ..."],
    rest: Float[Array, "rows ..."],
    sine: Float[Array, "..."],
    half: Float[Array, "..."],
) -> Float[Array, "rows ..."]:
    """c d + s r, as d + s(r − τd) with the half-angle tangent τ = s/(1 + c).

    So the rounding errors are relative to the change and not to what is there already. After a
    million updates in float32 the error is half as large.
    """
    return column + sine * (rest - half * column)


def _rank_one_loop(
    factor: Float[Array, "rows dim ..."], vector: Float[Array, "rows ..."]
) -> Float[Array, "rows dim ..."]:
    """The same as a loop over columns.

    The columns go in and come out by `scan`: in a carried matrix, every step would copy it.
    """
    count, n = factor.shape[:2]
    rows = jnp.arange(count).reshape((count,) + (1,) * (vector.ndim - 1))

    def one(rest: Array, step: tuple[Array, Array]) -> tuple[Array, Array]:
        k, column = step
        diagonal = lax.dynamic_index_in_dim(column, k, 0, keepdims=False)
        entry = lax.dynamic_index_in_dim(rest, k, 0, keepdims=False)
        inverse = lax.rsqrt(diagonal * diagonal + entry * entry)
        sine = entry * inverse
        half = sine / (1.0 + diagonal * inverse)
        rotated = jnp.where(rows >= k, _rotated(column, rest, sine, half), column)
        return jnp.where(rows > k, rest - sine * (column + half * rest), rest), rotated

    _, columns = lax.scan(one, vector, (jnp.arange(n), jnp.moveaxis(factor, 1, 0)))
    return jnp.moveaxis(columns, 0, 1)


def inverse_root_update(
    root: Float[Array, "dim dim ..."], vector: Float[Array, "dim ..."]
) -> Float[Array, "dim dim ..."]:
    """B' with B'ᵀB' = (V + x xᵀ)⁻¹, where BᵀB = V⁻¹.

    With p = Bx: (V + x xᵀ)⁻¹ = Bᵀ(I + p pᵀ)⁻¹B, and (I + p pᵀ)^{-1/2} = I − p pᵀ/(t(1 + t)) with
    t = √(1 + ‖p‖²). This is d² work, without a division by what may be small. It takes three
    products, where the update of a Cholesky factor goes through its columns one after the other.

    Potter's update: Battin, "Astronautical Guidance", 1964; Bierman, "Factorization Methods for
    Discrete Sequential Estimation", 1977, §II.
    """
    white = matvec(root, vector)
    t = jnp.sqrt(1.0 + dot(white, white))
    along = matvec(jnp.swapaxes(root, 0, 1), white) / (t * (1.0 + t))
    return root - outer(white, along)


#: Which arms may be chosen; None: all.
Mask: TypeAlias = Bool[Array, "arms *lanes"] | None


def argmax(scores: Float[Array, "arms *lanes"], allowed: Mask = None) -> Int[Array, "*lanes"]:
    """The first arm with the largest score, of those allowed.

    Where a score is not finite there is none. The answer is then one past the last arm, which the
    engine takes as a divergence.
    """
    sound = jnp.all(jnp.isfinite(scores), axis=0)
    if allowed is not None:
        scores = jnp.where(allowed, scores, -jnp.inf)
    return jnp.where(sound, jnp.argmax(scores, axis=0), scores.shape[0])


def allowed_count(arms: int, allowed: Mask) -> Int[Array, "*lanes"] | int:
    """How many arms may be chosen."""
    return arms if allowed is None else jnp.sum(allowed, axis=0)


def nth_allowed(n: Int[Array, "*lanes"], allowed: Mask) -> Int[Array, "*lanes"]:
    """Arm number n, counted from 0, of those that may be chosen."""
    return n if allowed is None else jnp.sum(jnp.cumsum(allowed, axis=0) <= n, axis=0)


def one_hot(index: Int[Array, "*lanes"], size: int) -> Float[Array, "size *lanes"]:
    """1 at `index` along a new leading axis."""
    positions = jnp.arange(size).reshape((size,) + (1,) * index.ndim)
    return (positions == index).astype(jnp.float32)


def pick(values: Float[Array, "size ..."], hot: Float[Array, "size ..."]) -> Float[Array, "..."]:
    """The entry that a one-hot vector names."""
    if hot.shape[0] > WRITTEN_OUT_ARMS:
        return jnp.sum(values * hot, axis=0)
    return dot(values, hot)
