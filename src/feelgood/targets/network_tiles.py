"""Programs of an accelerator on their way through a network: tiles of picks, layers, blocks.

What `feelgood.targets.network_programs` is made of. It is written for Triton: the lengths of all
arrays are powers of 2, and what is read or written beyond the end is masked.
"""

import itertools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

from feelgood.targets.networks import Network

#: A matrix product has at least so many rows, columns and terms.
_SMALLEST = 16
#: The most inputs in one product of the first layer.
TERMS = 32


class TileThreads(NamedTuple):
    """How a program is spread: picks per tile, and how many times 32 threads it has."""

    rows: int
    warps: int
    #: Passes of a loop whose numbers are on their way from memory at once.
    stages: int = 1


def first_size(network: Network) -> int:
    """Weights of the first layer, which the flat vector begins with."""
    return network.spec.dim * network.spec.blocks * network.layers[0]


def terms_of(network: Network) -> int:
    """Inputs in a product."""
    return min(_padded(network.spec.dim), TERMS)


def products_of(network: Network) -> int:
    """How many of them all inputs take."""
    return -(-network.spec.dim // terms_of(network))


def _padded(length: int) -> int:
    return max(_SMALLEST, 1 << (length - 1).bit_length())


def _column(length: int) -> Int[Array, "1 length"]:
    return lax.iota(jnp.int32, length)[None, :]


def _row(length: int) -> Int[Array, "length 1"]:
    return lax.iota(jnp.int32, length)[:, None]


def _load(ref: Any, place: Array, inside: Array, other: int | float = 0) -> Array:
    from jax.experimental.pallas import triton

    loaded: Array = triton.load(ref.at[place], mask=inside, other=other)
    return loaded


def _store(ref: Any, place: Array, values: Array, inside: Array) -> None:
    from jax.experimental.pallas import triton

    triton.store(ref.at[place], values, mask=inside)


def _product(a: Array, b: Array) -> Array:
    """With the digits that products of batches have anywhere on an accelerator."""
    return jnp.dot(a, b, preferred_element_type=jnp.float32)


def _any(these: Array) -> Array:
    return jnp.max(these.astype(jnp.int32)) > 0


class PicksOfArm:
    """The picks of one arm, a tile at a time.

    Picks are as many as rows, or a multiple of that: `lengths` has both numbers. In each of these
    parts they are looked at from the first of them to the last.
    """

    def __init__(self, arms: Any, lengths: tuple[int, int], arm: Any, threads: TileThreads) -> None:
        self.arms, self.arm, self.rows = arms, arm, threads.rows
        count, self.part = lengths
        numbers = lax.iota(jnp.int32, _padded(count))
        mine = self._mine(numbers, count)
        #: Where the arm's picks begin in each part, and the tiles from there to the last of them.
        self.first, self.tiles = [], []
        for start in range(0, count, self.part):
            end = start + self.part
            own = mine & (numbers >= start) & (numbers < end)
            first = jnp.min(jnp.where(own, numbers, end))
            length = jnp.max(jnp.where(own, numbers, -1)) + 1 - first
            self.first.append(first)
            self.tiles.append(lax.div(jnp.maximum(length, 0) + (self.rows - 1), self.rows))

    def _mine(self, numbers: Array, end: Any) -> Array:
        return _load(self.arms, numbers, numbers < end, -1) == self.arm

    def each_tile(
        self,
        change: Callable[[Array, Array, Any], Any],
        start: Any,
        share: Any = 0,
        shares: int = 1,
    ) -> Any:
        """`change(numbers, mine, so_far)` for each tile of a share that has one of them."""

        def one(i: Int[Array, ""], so_far: Any) -> Any:
            tile = i * shares + share
            first, end, before = self.first[0] + tile * self.rows, self.part, self.tiles[0]
            for own, tiles in zip(self.first[1:], self.tiles[1:], strict=True):
                later = tile >= before
                first = jnp.where(later, own + (tile - before) * self.rows, first)
                end, before = end + self.part * later.astype(jnp.int32), before + tiles
            numbers = first + lax.iota(jnp.int32, self.rows)
            mine = self._mine(numbers, end)
            return lax.cond(
                _any(mine), lambda so_far: change(numbers, mine, so_far), lambda same: same, so_far
            )

        tiles = sum(self.tiles) + (shares - 1 - share)
        return lax.fori_loop(0, lax.div(tiles, shares), one, start)


def own_tile(network: Network, theta: Any, threads: TileThreads, count: int) -> tuple[Any, "Tile"]:
    """The number of the tile that this program has of so many picks, and the tile."""
    from jax.experimental import pallas

    number = pallas.program_id(0)
    numbers = number * threads.rows + lax.iota(jnp.int32, threads.rows)
    return number, Tile(network, theta, numbers, numbers < count)


class Tile:
    """Some picks on their way through the network. Lengths of all arrays are powers of 2."""

    def __init__(
        self, network: Network, theta: Any, numbers: Int[Array, " picks"], there: Array
    ) -> None:
        self.network, self.theta = network, theta
        self.numbers, self.there = numbers, there

    def take(self, ref: Any, other: int | float) -> Array:
        """The picks' own numbers; `other` behind the last."""
        return _load(ref, self.numbers, self.there, other)

    def take_rows(self, ref: Any, width: int, first: Any = 0) -> Array:
        """A row of numbers per pick, of which the first's is row `first`."""
        return _load(ref, *self._places(width, first))

    def put(self, ref: Any, place: Array, values: Array) -> None:
        """The picks' numbers at these places."""
        _store(ref, place, values, self.there)

    def put_rows(self, ref: Any, values: Array, width: int, first: Any = 0) -> None:
        """The same, written."""
        place, inside = self._places(width, first)
        _store(ref, place, values, inside)

    def _places(self, width: int, first: Any) -> tuple[Array, Array]:
        row, column = (first + self.numbers)[:, None], _column(_padded(width))
        return row * width + column, self.there[:, None] & (column < width)

    # ---- the first layer ----------------------------------------------------------------

    def with_block(self, rows: Any, arm: Int[Array, ""], start: Any, products: int) -> Array:
        """So many products of the first layer with the block of one arm, without the bias."""
        network = self.network
        dim, hidden, terms = network.spec.dim, network.layers[0], terms_of(network)
        row = (self.numbers % (rows.shape[0] // network.width))[:, None] * network.width
        these, column = self.there[:, None], _column(_padded(hidden))

        def product(number: Any) -> Array:
            place = number * terms + _column(terms)
            inputs = _load(rows, row + place, these & (place < dim))
            place = number * terms + _row(terms)
            at = place * (network.spec.blocks * hidden) + arm * hidden + column
            weights = _load(self.theta, at, (place < dim) & (column < hidden))
            return _product(inputs, weights)

        if products == 1:
            return product(start)
        nothing = jnp.zeros((len(self.numbers), column.shape[1]), jnp.float32)
        return lax.fori_loop(0, products, lambda i, total: total + product(start + i), nothing)


class Layers:
    """The layers behind the first, with their weights."""

    def __init__(self, network: Network, theta: Any) -> None:
        self.network, depth = network, len(network.layers)
        self.dense_at, self.biases_at, self.output_at = self.places(network)
        self.dense = [
            _load(theta, *_matrix(at, shape))
            for at, shape in zip(self.dense_at, network.shapes[1:depth], strict=True)
        ]
        places = [*self.biases_at, self.output_at]
        widths = [*network.layers, network.layers[-1]]
        *self.biases, self.last = [
            _load(theta, *_vector(at, width)) for at, width in zip(places, widths, strict=True)
        ]

    @staticmethod
    def places(network: Network) -> tuple[list[int], list[int], int]:
        """Where matrices, biases and the output's weights begin in the flat vector."""
        ends = list(itertools.accumulate(math.prod(shape) for shape in network.shapes))
        depth = len(network.layers)
        return ends[: depth - 1], ends[depth - 1 : 2 * depth - 1], ends[2 * depth - 1]

    def hidden(self, before: Array) -> list[Array]:
        """All hidden layers after their activation, from the first on."""
        out = [self.network.activate(before + self.biases[0])]
        for dense, bias in zip(self.dense, self.biases[1:], strict=True):
            out.append(self.network.activate(_product(out[-1], dense) + bias))
        return out

    def output(self, hidden: list[Array]) -> Float[Array, " picks"]:
        """f."""
        return jnp.sum(hidden[-1] * self.last, axis=1)

    def write_gradient(
        self, out: Any, at: Any, hidden: list[Array], slopes: Float[Array, " picks"]
    ) -> Array:
        """The sum of slope · ∇f over the tile, without the first layer's; and ∂/∂ its outputs."""
        network, at = self.network, at - first_size(self.network)
        self._write_sum(out, at + self.output_at, slopes[:, None] * hidden[-1], -1)
        delta = slopes[:, None] * network.slope(hidden[-1]) * self.last
        for depth in range(len(network.layers) - 1, 0, -1):
            self._write_sum(out, at + self.biases_at[depth], delta, depth)
            place, inside = _matrix(at + self.dense_at[depth - 1], network.shapes[depth])
            _store(out, place, _product(hidden[depth - 1].T, delta), inside)
            back = _product(delta, self.dense[depth - 1].T)
            delta = back * network.slope(hidden[depth - 1])
        self._write_sum(out, at + self.biases_at[0], delta, 0)
        return delta

    def _write_sum(self, out: Any, at: Any, terms: Array, layer: int) -> None:
        """The sum over the picks."""
        place, inside = _vector(at, self.network.layers[layer])
        _store(out, place, jnp.sum(terms, axis=0), inside)


def _vector(at: Any, length: int) -> tuple[Array, Array]:
    """Where the entries of a vector are, and which of the padded ones there are."""
    column = lax.iota(jnp.int32, _padded(length))
    return at + column, column < length


def _matrix(at: Any, shape: tuple[int, ...]) -> tuple[Array, Array]:
    """The same of a matrix."""
    row, column = _row(_padded(shape[0])), _column(_padded(shape[1]))
    return at + row * shape[1] + column, (row < shape[0]) & (column < shape[1])


class BlockGradient:
    """The gradient of a part of an arm's block of the first layer."""

    def __init__(self, network: Network, part: Any) -> None:
        self.network, self.first_input = network, part * terms_of(network)

    def write(self, rows: Any, picks: PicksOfArm, deltas: Any, out: Any) -> None:
        """Its place in the flat vector is written."""
        network, hidden = self.network, self.network.layers[0]
        row, column = self.first_input + _row(terms_of(network)), _column(_padded(hidden))

        def add(numbers: Array, mine: Array, total: Array) -> Array:
            return total + self._of(rows, deltas, numbers, mine)

        total = picks.each_tile(add, jnp.zeros((len(row), column.shape[1]), jnp.float32))
        place = row * (network.spec.blocks * hidden) + picks.arm * hidden + column
        _store(out, place, total, (row < network.spec.dim) & (column < hidden))

    def _of(self, rows: Any, deltas: Any, numbers: Array, mine: Array) -> Array:
        """The share of some picks."""
        network, hidden = self.network, self.network.layers[0]
        place, column = self.first_input + _column(terms_of(network)), _column(_padded(hidden))
        row = (numbers % (rows.shape[0] // network.width))[:, None] * network.width
        inputs = _load(rows, row + place, mine[:, None] & (place < network.spec.dim))
        back = numbers[:, None] * hidden + column
        return _product(inputs.T, _load(deltas, back, mine[:, None] & (column < hidden)))


class Sums(NamedTuple):
    """The sums over tiles of what they have of the other layers."""

    #: Where they begin in the flat vector, their number, and that of the tiles.
    at: int
    size: int
    tiles: int

    def write(self, parts: Any, out: Any, part: Any, among: int) -> None:
        """The share of one of so many programs; behind all sums there are zeros."""
        block, end = 1024, out.shape[0] - self.at

        def one(number: Int[Array, ""], nothing: None) -> None:
            place = (number * among + part) * block + lax.iota(jnp.int32, block)
            inside = place < self.size
            total = jnp.zeros(block, jnp.float32)
            for tile in range(self.tiles):
                total = total + _load(parts, tile * self.size + place, inside)
            _store(out, self.at + place, total, place < end)
            return nothing

        lax.fori_loop(0, -(-end // (block * among)), one, None)
