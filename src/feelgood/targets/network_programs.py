"""A network's gradient as programs of an accelerator: tiles of rows go through all layers at once.

Carried out one operation after the other, a gradient writes every activation of every row, arm and
chain into memory and reads it again. That takes far longer than the products themselves. And the
first layer, which has a block of weights per arm, is multiplied with all blocks where a row needs
one or two.

Here the gradient is a sum over picks (`feelgood.targets.network_picks`). Three programs make it:

1. the first layer of each pick, with the block of its arm alone,
2. the other layers, forward and back, up to the gradient of what the first layer gives,
3. the gradient of the first layer's blocks, and the sum of what the tiles have of the other layers.

A program goes through the arms that its rows have, so that rows whose arms lie together are the
quickest. All sums have a fixed order: a run that is taken up again has the same bits.

As `feelgood.numerics.chain_programs`, it is made by Pallas, for Triton.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

from feelgood.targets.network_picks import Passes, Picks
from feelgood.targets.networks import Network

_Vector = Float[Array, " parameters"]
#: The most inputs, and the widest layer, that a program takes.
MOST_INPUTS, MOST_WIDTH = 64, 128
#: A matrix product has at least so many rows, columns and terms.
_SMALLEST = 16
#: With more arms than the first, it pays to bring the rows of an arm together; with more than the
#: second, not to multiply with the blocks of all arms.
FEW_ARMS, MANY_ARMS = 3, 16


class TileThreads(NamedTuple):
    """How a program is spread: picks per tile, and how many times 32 threads it has."""

    rows: int
    warps: int


FIRST_LAYER = FIRST_BLOCKS = TileThreads(32, 4)
OTHER_LAYERS = ALL_SCORES = TileThreads(64, 4)


def suits_programs(network: Network, bonus: bool) -> bool:
    """Whether gradients of this network are programs, and the layout asks for it.

    Sums that must keep all digits, wide layers, and contexts per arm are left to the other way. So
    are networks that it is quicker for, measured on an H200 (`bench/gpu_networks.py`): those with
    many inputs; and with a bonus, which needs all arms, a single hidden layer and few arms.
    """
    spec = network.spec
    able = spec.layout.steps != "together" and not network.exact and not spec.shared
    narrow = network.width <= MOST_INPUTS and max(network.layers) <= MOST_WIDTH
    return able and narrow and (not bonus or len(network.layers) > 1 or spec.arms > MANY_ARMS)


def wants_arms_together(network: Network) -> bool:
    """Whether a batch is best sorted by its arms."""
    return network.spec.arms > FEW_ARMS and suits_programs(network, bonus=False)


def program_scores(
    network: Network, theta: _Vector, rows: Float[Array, "rows width"]
) -> Float[Array, "rows arms"]:
    """f of every arm."""
    count, every = len(rows), network.spec.arms

    def program(theta_ref: Any, rows_ref: Any, out_ref: Any) -> None:
        tile = _Tile(network, theta_ref, ALL_SCORES.rows, count)
        layers = _Layers(network, theta_ref)

        def one(arm: Int[Array, ""], nothing: None) -> None:
            before = tile.with_block(rows_ref, arm, tile.there)
            tile.put(out_ref, tile.numbers * every + arm, layers.output(layers.hidden(before)))
            return nothing

        lax.fori_loop(0, every, one, None)

    call = _call(network, program, ALL_SCORES, [count * every], _tiles(count, ALL_SCORES))
    return call(theta, rows.reshape(-1))[0].reshape(count, every)


def program_gradient(
    network: Network, theta: _Vector, rows: Float[Array, "rows width"], picks: Picks
) -> tuple[Float[Array, " picks"], _Vector]:
    """The score of each pick, and Σ slope · ∇f."""
    count, width, size = len(picks.arms), network.layers[0], network.parameters
    flat, first, few = rows.reshape(-1), _first_size(network), _tiles(count, OTHER_LAYERS)

    def first_layer(theta_ref: Any, rows_ref: Any, arms_ref: Any, out_ref: Any) -> None:
        tile = _Tile(network, theta_ref, FIRST_LAYER.rows, count)
        tile.put_rows(out_ref, tile.first_layer(rows_ref, tile.take(arms_ref, -1)), width)

    call = _call(network, first_layer, FIRST_LAYER, [count * width], _tiles(count, FIRST_LAYER))
    [before] = call(theta, flat, picks.arms)

    def others(theta_ref: Any, before_ref: Any, *refs: Any) -> None:
        *numbers, scores_ref, deltas_ref, parts_ref = refs
        tile = _Tile(network, theta_ref, OTHER_LAYERS.rows, count)
        layers = _Layers(network, theta_ref)
        hidden = layers.hidden(tile.take_rows(before_ref, width))
        score = layers.output(hidden)
        slopes = picks.slope(score, *(tile.take(ref, 0) for ref in numbers))
        slopes = jnp.where(tile.there, slopes, 0.0)
        delta = layers.write_gradient(parts_ref, tile.number * (size - first), hidden, slopes)
        tile.put(scores_ref, tile.numbers, score)
        tile.put_rows(deltas_ref, delta, width)

    sizes = [count, count * width, few * (size - first)]
    score, deltas, parts = _call(network, others, OTHER_LAYERS, sizes, few)(
        theta, before, *picks.numbers
    )

    def blocks(rows_ref: Any, arms_ref: Any, deltas_ref: Any, parts_ref: Any, out_ref: Any) -> None:
        from jax.experimental import pallas

        arm = pallas.program_id(0)
        block = _Block(network, arm, count)
        pallas.when(arm < network.spec.arms)(
            lambda: block.write(rows_ref, arms_ref, deltas_ref, out_ref)
        )
        pallas.when(arm == network.spec.arms)(
            lambda: _write_sums(parts_ref, out_ref, first, size - first, few)
        )

    call = _call(network, blocks, FIRST_BLOCKS, [size], network.spec.arms + 1)
    return score, call(flat, picks.arms, deltas, parts)[0]


AS_PROGRAMS = Passes(program_scores, program_gradient)


def _call(
    network: Network,
    program: Callable[..., None],
    threads: TileThreads,
    sizes: Sequence[int],
    programs: int,
) -> Callable[..., list[Float[Array, " size"]]]:
    """So many programs; their results are flat, of these sizes."""
    from jax.experimental import pallas
    from jax.experimental.pallas import triton

    call: Callable[..., list[Float[Array, " size"]]] = pallas.pallas_call(
        program,
        out_shape=[jax.ShapeDtypeStruct((size,), jnp.float32) for size in sizes],
        grid=(programs,),
        compiler_params=triton.CompilerParams(num_warps=threads.warps, num_stages=1),
        interpret=network.spec.layout.steps == "interpreted",
    )
    return call


def _first_size(network: Network) -> int:
    """Weights of the first layer, which the flat vector begins with."""
    return network.spec.dim * network.spec.blocks * network.layers[0]


def _tiles(count: int, threads: TileThreads) -> int:
    return -(-count // threads.rows)


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


class _Tile:
    """Some picks on their way through the network. Lengths of all arrays are powers of 2."""

    def __init__(self, network: Network, theta: Any, size: int, count: int) -> None:
        from jax.experimental import pallas

        self.network, self.theta = network, theta
        self.number = pallas.program_id(0)
        self.numbers = self.number * size + lax.iota(jnp.int32, size)
        self.there = self.numbers < count

    def take(self, ref: Any, other: int | float) -> Array:
        """The picks' own numbers; `other` behind the last."""
        return _load(ref, self.numbers, self.there, other)

    def take_rows(self, ref: Any, width: int) -> Array:
        """A row of numbers per pick."""
        return _load(ref, *self._places(width))

    def put(self, ref: Any, place: Array, values: Array) -> None:
        """The picks' numbers at these places."""
        _store(ref, place, values, self.there)

    def put_rows(self, ref: Any, values: Array, width: int) -> None:
        """A row of numbers per pick."""
        place, inside = self._places(width)
        _store(ref, place, values, inside)

    def _places(self, width: int) -> tuple[Array, Array]:
        column = _column(_padded(width))
        return self.numbers[:, None] * width + column, self.there[:, None] & (column < width)

    # ---- the first layer ----------------------------------------------------------------

    def first_layer(self, rows: Any, arms: Int[Array, " picks"]) -> Array:
        """Of each pick, with the block of its arm, before the activation."""
        lowest = jnp.min(jnp.where(self.there, arms, self.network.spec.arms))
        total = jnp.zeros((len(self.numbers), _padded(self.network.layers[0])), jnp.float32)

        def add(arm: Int[Array, ""], total: Array) -> Array:
            mine = arms == arm
            return lax.cond(
                _any(mine),
                lambda total: total + self.with_block(rows, arm, mine),
                lambda total: total,
                total,
            )

        return lax.fori_loop(lowest, jnp.max(arms) + 1, add, total)

    def with_block(self, rows: Any, arm: Int[Array, ""], mine: Array) -> Array:
        """With the block of one arm, of some picks and zeros for the others."""
        network = self.network
        width, dim, hidden = network.width, network.spec.dim, network.layers[0]
        place = _column(_padded(width))
        row = (self.numbers % (rows.shape[0] // width))[:, None] * width
        inputs = _load(rows, row + place, (self.there & mine)[:, None] & (place < width))
        row, column = _row(_padded(width)), _column(_padded(hidden))
        at = row * (network.spec.blocks * hidden) + arm * hidden + column
        weights = _load(self.theta, at, (row < dim) & (column < hidden))
        # The bias stands in the row of the 1 that contexts end with.
        at = _Layers.places(network)[1][0] + 0 * row + column
        bias = _load(self.theta, at, (row == dim) & (column < hidden))
        return _product(inputs, weights + bias)


class _Layers:
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
        out = [self.network.activate(before)]
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
        network, at = self.network, at - _first_size(self.network)
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


class _Block:
    """The gradient of an arm's block of the first layer."""

    def __init__(self, network: Network, arm: Any, count: int) -> None:
        self.network, self.arm, self.count = network, arm, count

    def write(self, rows: Any, arms: Any, deltas: Any, out: Any) -> None:
        """Its place in the flat vector is written."""
        network, hidden = self.network, self.network.layers[0]
        row, column = _row(_padded(network.width)), _column(_padded(hidden))

        def add(tile: Int[Array, ""], total: Array) -> Array:
            numbers = tile * FIRST_BLOCKS.rows + lax.iota(jnp.int32, FIRST_BLOCKS.rows)
            mine = _load(arms, numbers, numbers < self.count, -1) == self.arm
            return lax.cond(
                _any(mine),
                lambda total: total + self._of(rows, deltas, numbers, mine),
                lambda total: total,
                total,
            )

        nothing = jnp.zeros((len(row), column.shape[1]), jnp.float32)
        total = lax.fori_loop(0, _tiles(self.count, FIRST_BLOCKS), add, nothing)
        place = row * (network.spec.blocks * hidden) + self.arm * hidden + column
        _store(out, place, total, (row < network.spec.dim) & (column < hidden))

    def _of(self, rows: Any, deltas: Any, numbers: Array, mine: Array) -> Array:
        """The part of some picks."""
        width, hidden = self.network.width, self.network.layers[0]
        place, column = _column(_padded(width)), _column(_padded(hidden))
        row = (numbers % (rows.shape[0] // width))[:, None] * width
        inputs = _load(rows, row + place, mine[:, None] & (place < width))
        back = numbers[:, None] * hidden + column
        return _product(inputs.T, _load(deltas, back, mine[:, None] & (column < hidden)))


def _write_sums(parts: Any, out: Any, at: int, size: int, tiles: int) -> None:
    """The sum over the tiles of what they have of the other layers."""
    block = 1024

    def one(number: Int[Array, ""], nothing: None) -> None:
        place = number * block + lax.iota(jnp.int32, block)
        inside = place < size
        total = jnp.zeros(block, jnp.float32)
        for tile in range(tiles):
            total = total + _load(parts, tile * size + place, inside)
        _store(out, at + place, total, inside)
        return nothing

    lax.fori_loop(0, -(-size // block), one, None)
