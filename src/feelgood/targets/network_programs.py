"""Passes through a network as programs of an accelerator: one group of threads per tile of rows.

Carried out one operation after the other, a pass writes every activation of every row, arm and
chain into memory and reads it again, which takes far longer than the products themselves. Here a
tile of rows goes through all layers in one kernel, and only scores or gradients leave it.

The gradient is a sum over *picks*: a row, an arm of it and a slope. With a feel-good bonus a row has
two, the arm that was played and the best one; the other arms' gradients are never computed. Each
tile writes its own sum, and the sums are added in a fixed order, so that a run that is taken up
again has the same bits.

As `feelgood.numerics.chain_programs`, it is made by Pallas, for Triton.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

from feelgood.targets.networks import Network

Vector = Float[Array, " parameters"]
#: Rows, and inputs of a first layer, that a program has room for.
MOST_INPUTS, MOST_WIDTH = 64, 128
#: Up to so many arms all are gone through; of more, only those that a tile of rows has.
FEW_ARMS = 16
#: A matrix product has at least so many rows, columns and terms.
SMALLEST = 16


class Threads(NamedTuple):
    """How a pass is spread: rows per program, and how many times 32 threads it has."""

    rows: int
    warps: int


SCORES, GRADIENT = Threads(64, 4), Threads(64, 4)


def suits(network: Network) -> bool:
    """Whether passes through this network are programs, and the layout asks for it.

    Sums that must keep all digits, wide layers, and contexts per arm are left to the other way.
    """
    small = network.width <= MOST_INPUTS and max(network.layers) <= MOST_WIDTH
    apart = network.spec.layout.steps != "together"
    return apart and small and not network.exact and not network.spec.shared


def scores(
    network: Network,
    theta: Vector,
    rows: Float[Array, "rows width"],
    arms: Int[Array, " rows"] | None = None,
) -> Float[Array, "rows arms"]:
    """f of every arm, or of one arm per row alone; as `Network.forward`."""
    count, every = len(rows), network.spec.arms
    alone = arms is not None

    def program(theta_ref: Any, rows_ref: Any, *refs: Any) -> None:
        tile = _Tile(network, theta_ref, rows_ref, SCORES.rows, count)
        out_ref = refs[-1]
        if alone:
            before = tile.first_layer(tile.take(refs[0], 0))
            tile.put(out_ref, tile.numbers, tile.output(before))
            return

        def one(arm: Int[Array, ""], nothing: None) -> None:
            before = tile.product(tile.inputs, tile.first(arm))
            tile.put(out_ref, tile.numbers * every + arm, tile.output(before))
            return nothing

        lax.fori_loop(0, every, one, None)

    more = (arms,) if alone else ()
    width = 1 if alone else every
    call = _call(network, program, SCORES, count, count * width)
    return call(theta, rows.reshape(-1), *more).reshape(count, width)


def gradient(
    network: Network,
    theta: Vector,
    rows: Float[Array, "rows width"],
    picks: list[tuple[Int[Array, " rows"], Float[Array, " rows"]]],
) -> Vector:
    """Σ slope · ∇f(row, arm), for an arm and a slope per row, or for several of each."""
    arms = jnp.concatenate([arm for arm, _ in picks])
    slopes = jnp.concatenate([slope for _, slope in picks])
    count, size = len(arms), network.parameters
    tiles = -(-count // GRADIENT.rows)

    def program(theta_ref: Any, rows_ref: Any, arms_ref: Any, slopes_ref: Any, out_ref: Any) -> None:
        tile = _Tile(network, theta_ref, rows_ref, GRADIENT.rows, count)
        chosen = tile.take(arms_ref, -1)
        tile.write_gradient(out_ref, size * tile.number, chosen, tile.take(slopes_ref, 0.0))

    call = _call(network, program, GRADIENT, count, tiles * size)
    return jnp.sum(call(theta, rows.reshape(-1), arms, slopes).reshape(tiles, size), axis=0)


def _call(
    network: Network, program: Callable[..., None], threads: Threads, count: int, size: int
) -> Callable[..., Float[Array, " size"]]:
    """The program over all tiles of `count` rows, with so many numbers as its result."""
    from jax.experimental import pallas
    from jax.experimental.pallas import triton

    call: Callable[..., Float[Array, " size"]] = pallas.pallas_call(
        program,
        out_shape=jax.ShapeDtypeStruct((size,), jnp.float32),
        grid=(-(-count // threads.rows),),
        compiler_params=triton.CompilerParams(num_warps=threads.warps, num_stages=1),
        interpret=network.spec.layout.steps == "interpreted",
    )
    return call


def _padded(length: int) -> int:
    return max(SMALLEST, 1 << (length - 1).bit_length())


class _Tile:
    """Some rows on their way through the network. All arrays have powers of 2 as their lengths."""

    def __init__(self, network: Network, theta: Any, rows: Any, size: int, count: int) -> None:
        from jax.experimental import pallas

        self.network, self.theta = network, theta
        self.number = pallas.program_id(0)
        self.numbers = self.number * size + lax.iota(jnp.int32, size)
        self.there = self.numbers < count
        ends = [0]
        for shape in network.shapes:
            ends.append(ends[-1] + _length(shape))
        depth = len(network.layers)
        self.firsts, self.dense_at = ends[0], ends[1:depth]
        self.biases_at, self.output_at = ends[depth : 2 * depth], ends[2 * depth]
        width = network.width
        column = _column(_padded(width))
        place = (self.numbers % (rows.shape[0] // width))[:, None] * width + column
        inside = self.there[:, None] & (column < width)
        self.inputs = self._load(rows, place, inside)
        self.biases = [
            self._vector(at, w) for at, w in zip(self.biases_at, network.layers, strict=True)
        ]
        self.dense = [
            self._matrix(at, shape)
            for at, shape in zip(self.dense_at, network.shapes[1:depth], strict=True)
        ]
        self.last = self._vector(self.output_at, network.layers[-1])

    # ---- memory -------------------------------------------------------------------------

    @staticmethod
    def _load(ref: Any, place: Array, inside: Array) -> Array:
        from jax.experimental.pallas import triton

        loaded: Array = triton.load(ref.at[place], mask=inside, other=0.0)
        return loaded

    def take(self, ref: Any, other: float) -> Array:
        """The rows' own numbers; `other` behind the last row."""
        from jax.experimental.pallas import triton

        taken: Array = triton.load(ref.at[self.numbers], mask=self.there, other=other)
        return taken

    def put(self, ref: Any, place: Array, values: Array) -> None:
        """The rows' numbers at these places."""
        from jax.experimental.pallas import triton

        triton.store(ref.at[place], values, mask=self.there)

    def _vector(self, at: int, length: int) -> Array:
        column = lax.iota(jnp.int32, _padded(length))
        return self._load(self.theta, at + column, column < length)

    def _matrix(self, at: int, shape: tuple[int, ...]) -> Array:
        return self._load(self.theta, *_places(at, shape[0], shape[1], shape[1]))

    def first(self, arm: Int[Array, ""]) -> Array:
        """The first layer of one arm, with the bias in the row of the 1 that contexts end with."""
        dim, width = self.network.spec.dim, self.network.layers[0]
        at = self.firsts + arm * width
        step = self.network.spec.blocks * width
        place, inside = _places(at, dim, width, step, self.inputs.shape[1])
        row = lax.iota(jnp.int32, self.inputs.shape[1])[:, None]
        return self._load(self.theta, place, inside) + jnp.where(row == dim, self.biases[0], 0.0)

    # ---- forward ------------------------------------------------------------------------

    @staticmethod
    def product(a: Array, b: Array) -> Array:
        """Each with the digits that products of batches have anywhere on an accelerator."""
        return jnp.dot(a, b, preferred_element_type=jnp.float32)

    def first_layer(self, arms: Int[Array, " rows"]) -> Array:
        """What the first layer makes of each row for its arm, before the activation."""
        shape = (len(self.numbers), len(self.biases[0]))

        def add(arm: Int[Array, ""], total: Array) -> Array:
            return total + self.product(self._of(arms, arm), self.first(arm))

        return self._over_arms(arms, add, jnp.zeros(shape, jnp.float32))

    def _of(self, arms: Int[Array, " rows"], arm: Int[Array, ""]) -> Array:
        """The rows of one arm, and zeros in the place of the others."""
        return jnp.where((arms == arm)[:, None], self.inputs, 0.0)

    def _over_arms(
        self,
        arms: Int[Array, " rows"],
        add: Callable[[Int[Array, ""], Array], Array],
        total: Array,
    ) -> Array:
        """Add to a sum for every arm that some row has."""
        if self.network.spec.arms <= FEW_ARMS:
            return lax.fori_loop(0, self.network.spec.arms, add, total)

        def maybe(arm: Int[Array, ""], total: Array) -> Array:
            present = jnp.max((arms == arm).astype(jnp.int32)) > 0
            return lax.cond(present, lambda t: add(arm, t), lambda t: t, total)

        return lax.fori_loop(0, self.network.spec.arms, maybe, total)

    def hidden(self, before: Array) -> list[Array]:
        """All hidden layers after their activation, from the first on."""
        out = [self.network.activate(before)]
        for dense, bias in zip(self.dense, self.biases[1:], strict=True):
            out.append(self.network.activate(self.product(out[-1], dense) + bias))
        return out

    def output(self, before: Array) -> Float[Array, " rows"]:
        """f."""
        return jnp.sum(self.hidden(before)[-1] * self.last, axis=1)

    # ---- back ---------------------------------------------------------------------------

    def write_gradient(
        self, out: Any, at: Int[Array, ""], arms: Int[Array, " rows"], slopes: Float[Array, " rows"]
    ) -> None:
        """The sum of slope · ∇f over the tile, as a flat vector that begins at `at`."""
        network = self.network
        hidden = self.hidden(self.first_layer(arms))
        self._write_vector(out, at + self.output_at, slopes[:, None] * hidden[-1], -1)
        delta = slopes[:, None] * network.slope(hidden[-1]) * self.last
        for depth in range(len(network.layers) - 1, 0, -1):
            shape = network.shapes[depth]
            self._write_vector(out, at + self.biases_at[depth], delta, depth)
            place, inside = _places(at + self.dense_at[depth - 1], *shape, shape[1])
            self._store(out, place, self.product(hidden[depth - 1].T, delta), inside)
            back = self.product(delta, self.dense[depth - 1].T)
            delta = back * network.slope(hidden[depth - 1])
        self._write_vector(out, at + self.biases_at[0], delta, 0)
        dim, width = network.spec.dim, network.layers[0]
        step, rows = network.spec.blocks * width, self.inputs.shape[1]

        def write(arm: Int[Array, ""], nothing: None) -> None:
            place, inside = _places(at + self.firsts + arm * width, dim, width, step, rows)
            self._store(out, place, self._first_gradient(arms, arm, delta), inside)
            return nothing

        lax.fori_loop(0, network.spec.arms, write, None)

    def _first_gradient(
        self, arms: Int[Array, " rows"], arm: Int[Array, ""], delta: Array
    ) -> Array:
        """That of one arm's first layer."""

        def here() -> Array:
            return self.product(self._of(arms, arm).T, delta)

        if self.network.spec.arms <= FEW_ARMS:
            return here()
        present = jnp.max((arms == arm).astype(jnp.int32)) > 0
        shape = (self.inputs.shape[1], delta.shape[1])
        return lax.cond(present, here, lambda: jnp.zeros(shape, jnp.float32))

    def _write_vector(self, out: Any, at: Array, terms: Array, layer: int) -> None:
        """The sum over the rows."""
        column = lax.iota(jnp.int32, terms.shape[1])
        self._store(out, at + column, jnp.sum(terms, axis=0), column < self.network.layers[layer])

    @staticmethod
    def _store(ref: Any, place: Array, values: Array, inside: Array) -> None:
        from jax.experimental.pallas import triton

        triton.store(ref.at[place], values, mask=inside)


def _length(shape: tuple[int, ...]) -> int:
    return shape[0] * (shape[1] if len(shape) > 1 else 1)


def _column(length: int) -> Int[Array, "1 length"]:
    return lax.iota(jnp.int32, length)[None, :]


def _places(
    at: Any, rows: int, columns: int, step: int, padded: int | None = None
) -> tuple[Array, Array]:
    """Where the entries of a matrix are, and which of the padded ones there are."""
    row = lax.iota(jnp.int32, padded or _padded(rows))[:, None]
    column = _column(_padded(columns))
    return at + row * step + column, (row < rows) & (column < columns)
