"""A network's gradient as programs of an accelerator: tiles of rows go through all layers at once.

Carried out one operation after the other, a gradient writes every activation of every row, arm and
chain into memory and reads it again. That takes far longer than the products themselves. And the
first layer, which has a block of weights per arm, is multiplied with all blocks where a row needs
one or two.

Here the gradient is a sum over picks (`feelgood.targets.network_picks`). Three programs make it:

1. the first layer of each pick, with the block of its arm alone,
2. the other layers, forward and back, up to the gradient of what the first layer gives,
3. the gradient of the first layer's blocks, and the sum of what the tiles have of the other layers.

The first and the third are programs per arm. They look at the picks from the arm's first to its
last, so that rows whose arms lie together are the quickest. Many inputs are multiplied some at a
time, and shared out among programs. All sums have a fixed order: a run that is taken up again has
the same bits.

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
#: The most inputs of a network that is not wide, and the widest layer, that programs take.
MOST_INPUTS, MOST_WIDTH = 64, 128
#: The most inputs in one product, and the most products that a program of the first layer makes.
TERMS, PRODUCTS = 32, 4
#: The most arms whose scores a program makes.
SCORED_ARMS = 8
#: A matrix product has at least so many rows, columns and terms.
_SMALLEST = 16
#: With more arms than the first, it pays to bring the rows of an arm together; with more than the
#: second, not to multiply with the blocks of all arms.
FEW_ARMS, MANY_ARMS = 3, 16


class TileThreads(NamedTuple):
    """How a program is spread: picks per tile, and how many times 32 threads it has."""

    rows: int
    warps: int
    #: Passes of a loop whose numbers are on their way from memory at once.
    stages: int = 1


FIRST_LAYER = TileThreads(32, 4, stages=3)
FIRST_BLOCKS = TileThreads(16, 4)
OTHER_LAYERS = ALL_SCORES = TileThreads(32, 4)


def suits_programs(network: Network, bonus: bool) -> bool:
    """Whether gradients of this network are programs, and the layout asks for it.

    Sums that must keep all digits, wide layers, and contexts per arm are left to the other way. So
    are networks that it is quicker for, measured on an H200 (`bench/gpu_networks.py`): with a
    bonus, which needs all arms, those that have many inputs, or a single hidden layer and few arms.
    """
    spec = network.spec
    able = spec.layout.steps != "together" and not network.exact and not spec.shared
    if not able or max(network.layers) > MOST_WIDTH:
        return False
    if network.width > MOST_INPUTS:
        return network.wide and not bonus
    return not bonus or len(network.layers) > 1 or spec.arms > MANY_ARMS


def wants_arms_together(network: Network) -> bool:
    """Whether a batch is best sorted by its arms."""
    return network.spec.arms > FEW_ARMS and suits_programs(network, bonus=False)


def program_scores(
    network: Network, theta: _Vector, rows: Float[Array, "rows width"]
) -> Float[Array, "rows arms"]:
    """f of every arm."""
    count, every = len(rows), network.spec.arms

    def program(theta_ref: Any, rows_ref: Any, out_ref: Any) -> None:
        from jax.experimental import pallas

        _, tile = _own_tile(network, theta_ref, ALL_SCORES, count)
        layers = _Layers(network, theta_ref)

        def one(arm: Int[Array, ""], nothing: None) -> None:
            before = tile.with_block(rows_ref, arm, 0, _products(network))
            tile.put(out_ref, tile.numbers * every + arm, layers.output(layers.hidden(before)))
            return nothing

        start = pallas.program_id(1) * SCORED_ARMS
        lax.fori_loop(start, jnp.minimum(start + SCORED_ARMS, every), one, None)

    grid = (_tiles(count, ALL_SCORES), -(-every // SCORED_ARMS))
    call = _call(network, program, ALL_SCORES, [count * every], grid)
    return call(theta, rows.reshape(-1))[0].reshape(count, every)


def program_gradient(
    network: Network, theta: _Vector, rows: Float[Array, "rows width"], picks: Picks
) -> tuple[Float[Array, " picks"], _Vector]:
    """The score of each pick, and Σ slope · ∇f; 0 behind the network's parameters."""
    count, width, size = len(picks.arms), network.layers[0], network.parameters
    flat, first, few = rows.reshape(-1), _first_size(network), _tiles(count, OTHER_LAYERS)

    def first_layer(theta_ref: Any, rows_ref: Any, arms_ref: Any, out_ref: Any) -> None:
        from jax.experimental import pallas

        number, part = pallas.program_id(0), pallas.program_id(1)
        of_arm = _PicksOfArm(arms_ref, count, lax.div(number, shares), FIRST_LAYER)
        products = min(_products(network), PRODUCTS)

        def write(numbers: Array, mine: Array, nothing: None) -> None:
            tile = _Tile(network, theta_ref, numbers, mine)
            total = tile.with_block(rows_ref, of_arm.arm, part * products, products)
            tile.put_rows(out_ref, total, width, part * count)
            return nothing

        of_arm.each_tile(write, None, lax.rem(number, shares), shares)

    # As many programs per arm as it has tiles where all arms have as many picks.
    shares = -(-_tiles(count, FIRST_LAYER) // network.spec.arms)
    parts_of_first = -(-_products(network) // PRODUCTS)
    grid = (network.spec.arms * shares, parts_of_first)
    call = _call(network, first_layer, FIRST_LAYER, [parts_of_first * count * width], grid)
    before = jnp.sum(call(theta, flat, picks.arms)[0].reshape(parts_of_first, -1), axis=0)

    def others(theta_ref: Any, before_ref: Any, *refs: Any) -> None:
        *numbers, scores_ref, deltas_ref, parts_ref = refs
        number, tile = _own_tile(network, theta_ref, OTHER_LAYERS, count)
        layers = _Layers(network, theta_ref)
        hidden = layers.hidden(tile.take_rows(before_ref, width))
        score = layers.output(hidden)
        slopes = picks.slope(score, *(tile.take(ref, 0) for ref in numbers))
        slopes = jnp.where(tile.there, slopes, 0.0)
        delta = layers.write_gradient(parts_ref, number * (size - first), hidden, slopes)
        tile.put(scores_ref, tile.numbers, score)
        tile.put_rows(deltas_ref, delta, width)

    sizes = [count, count * width, few * (size - first)]
    score, deltas, parts = _call(network, others, OTHER_LAYERS, sizes, (few, 1))(
        theta, before, *picks.numbers
    )

    def blocks(rows_ref: Any, arms_ref: Any, deltas_ref: Any, parts_ref: Any, out_ref: Any) -> None:
        from jax.experimental import pallas

        arm, part = pallas.program_id(0), pallas.program_id(1)
        of_arm = _PicksOfArm(arms_ref, count, arm, FIRST_BLOCKS)
        block = _Block(network, part)
        sums = _Sums(first, size - first, few)
        pallas.when(arm < network.spec.arms)(
            lambda: block.write(rows_ref, of_arm, deltas_ref, out_ref)
        )
        pallas.when(arm == network.spec.arms)(lambda: sums.write(parts_ref, out_ref, part, grid[1]))

    grid = (network.spec.arms + 1, _products(network))
    call = _call(network, blocks, FIRST_BLOCKS, [len(theta)], grid)
    return score, call(flat, picks.arms, deltas, parts)[0]


AS_PROGRAMS = Passes(program_scores, program_gradient)


def _call(
    network: Network,
    program: Callable[..., None],
    threads: TileThreads,
    sizes: Sequence[int],
    grid: tuple[int, int],
) -> Callable[..., list[Float[Array, " size"]]]:
    """So many programs, times their parts; their results are flat, of these sizes."""
    from jax.experimental import pallas
    from jax.experimental.pallas import triton

    call: Callable[..., list[Float[Array, " size"]]] = pallas.pallas_call(
        program,
        out_shape=[jax.ShapeDtypeStruct((size,), jnp.float32) for size in sizes],
        grid=grid,
        compiler_params=triton.CompilerParams(num_warps=threads.warps, num_stages=threads.stages),
        interpret=network.spec.layout.steps == "interpreted",
    )
    return call


def _first_size(network: Network) -> int:
    """Weights of the first layer, which the flat vector begins with."""
    return network.spec.dim * network.spec.blocks * network.layers[0]


def _terms(network: Network) -> int:
    """Inputs in a product."""
    return min(_padded(network.spec.dim), TERMS)


def _products(network: Network) -> int:
    """How many of them all inputs take."""
    return -(-network.spec.dim // _terms(network))


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


class _PicksOfArm:
    """The picks of one arm, from the first of them to the last, a tile at a time."""

    def __init__(self, arms: Any, count: int, arm: Any, threads: TileThreads) -> None:
        self.arms, self.count, self.arm, self.rows = arms, count, arm, threads.rows
        numbers = lax.iota(jnp.int32, _padded(count))
        mine = self._mine(numbers)
        self.first = jnp.min(jnp.where(mine, numbers, count))
        length = jnp.max(jnp.where(mine, numbers, -1)) + 1 - self.first
        self.tiles = lax.div(length + (self.rows - 1), self.rows)

    def _mine(self, numbers: Array) -> Array:
        return _load(self.arms, numbers, numbers < self.count, -1) == self.arm

    def each_tile(
        self,
        change: Callable[[Array, Array, Any], Any],
        start: Any,
        share: Any = 0,
        shares: int = 1,
    ) -> Any:
        """`change(numbers, mine, so_far)` for each tile of a share that has one of them."""

        def one(i: Int[Array, ""], so_far: Any) -> Any:
            first = self.first + (i * shares + share) * self.rows
            numbers = first + lax.iota(jnp.int32, self.rows)
            mine = self._mine(numbers)
            return lax.cond(
                _any(mine), lambda so_far: change(numbers, mine, so_far), lambda same: same, so_far
            )

        return lax.fori_loop(0, lax.div(self.tiles + (shares - 1 - share), shares), one, start)


def _own_tile(
    network: Network, theta: Any, threads: TileThreads, count: int
) -> tuple[Any, "_Tile"]:
    """The number of the tile that this program has of so many picks, and the tile."""
    from jax.experimental import pallas

    number = pallas.program_id(0)
    numbers = number * threads.rows + lax.iota(jnp.int32, threads.rows)
    return number, _Tile(network, theta, numbers, numbers < count)


class _Tile:
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
        dim, hidden, terms = network.spec.dim, network.layers[0], _terms(network)
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
    """The gradient of a part of an arm's block of the first layer."""

    def __init__(self, network: Network, part: Any) -> None:
        self.network, self.first_input = network, part * _terms(network)

    def write(self, rows: Any, picks: _PicksOfArm, deltas: Any, out: Any) -> None:
        """Its place in the flat vector is written."""
        network, hidden = self.network, self.network.layers[0]
        row, column = self.first_input + _row(_terms(network)), _column(_padded(hidden))

        def add(numbers: Array, mine: Array, total: Array) -> Array:
            return total + self._of(rows, deltas, numbers, mine)

        total = picks.each_tile(add, jnp.zeros((len(row), column.shape[1]), jnp.float32))
        place = row * (network.spec.blocks * hidden) + picks.arm * hidden + column
        _store(out, place, total, (row < network.spec.dim) & (column < hidden))

    def _of(self, rows: Any, deltas: Any, numbers: Array, mine: Array) -> Array:
        """The share of some picks."""
        network, hidden = self.network, self.network.layers[0]
        place, column = self.first_input + _column(_terms(network)), _column(_padded(hidden))
        row = (numbers % (rows.shape[0] // network.width))[:, None] * network.width
        inputs = _load(rows, row + place, mine[:, None] & (place < network.spec.dim))
        back = numbers[:, None] * hidden + column
        return _product(inputs.T, _load(deltas, back, mine[:, None] & (column < hidden)))


class _Sums(NamedTuple):
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
