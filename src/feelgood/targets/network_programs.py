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

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

from feelgood.targets.network_picks import Passes, Picks
from feelgood.targets.network_tiles import (
    BlockGradient,
    Layers,
    PicksOfArm,
    Sums,
    Tile,
    TileThreads,
    first_size,
    own_tile,
    products_of,
)
from feelgood.targets.networks import Network

_Vector = Float[Array, " parameters"]
#: The most inputs of a network that is not wide, and the widest layer, that programs take.
MOST_INPUTS, MOST_WIDTH = 64, 128
#: The most products that a program of the first layer makes.
PRODUCTS = 4
#: The most arms whose scores a program makes.
SCORED_ARMS = 8
#: With more arms than the first, it pays to bring the rows of an arm together; with more than the
#: second, not to multiply with the blocks of all arms.
FEW_ARMS, MANY_ARMS = 3, 16
#: How the programs are spread.
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

        _, tile = own_tile(network, theta_ref, ALL_SCORES, count)
        layers = Layers(network, theta_ref)

        def one(arm: Int[Array, ""], nothing: None) -> None:
            before = tile.with_block(rows_ref, arm, 0, products_of(network))
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
    flat, first, few = rows.reshape(-1), first_size(network), _tiles(count, OTHER_LAYERS)
    before = _first_layer(network, theta, flat, picks.arms)

    def others(theta_ref: Any, before_ref: Any, *refs: Any) -> None:
        *numbers, scores_ref, deltas_ref, parts_ref = refs
        number, tile = own_tile(network, theta_ref, OTHER_LAYERS, count)
        layers = Layers(network, theta_ref)
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
        of_arm = PicksOfArm(arms_ref, (count, len(rows)), arm, FIRST_BLOCKS)
        block = BlockGradient(network, part)
        sums = Sums(first, size - first, few)
        pallas.when(arm < network.spec.arms)(
            lambda: block.write(rows_ref, of_arm, deltas_ref, out_ref)
        )
        pallas.when(arm == network.spec.arms)(lambda: sums.write(parts_ref, out_ref, part, grid[1]))

    grid = (network.spec.arms + 1, products_of(network))
    call = _call(network, blocks, FIRST_BLOCKS, [len(theta)], grid)
    return score, call(flat, picks.arms, deltas, parts)[0]


def _first_layer(
    network: Network, theta: _Vector, rows: Float[Array, " flat"], arms: Int[Array, " picks"]
) -> Float[Array, " flat_picks"]:
    """Of each pick, with the block of its arm, before the bias."""
    count, width, most = len(arms), network.layers[0], products_of(network)
    # As many programs per arm as it has tiles where all arms have as many picks.
    shares = -(-_tiles(count, FIRST_LAYER) // network.spec.arms)
    parts = -(-most // PRODUCTS)

    def program(theta_ref: Any, rows_ref: Any, arms_ref: Any, out_ref: Any) -> None:
        from jax.experimental import pallas

        number, part = pallas.program_id(0), pallas.program_id(1)
        lengths = count, len(rows) // network.width
        picks = PicksOfArm(arms_ref, lengths, lax.div(number, shares), FIRST_LAYER)

        def write(numbers: Array, mine: Array, nothing: None) -> None:
            tile = Tile(network, theta_ref, numbers, mine)
            total = tile.with_block(rows_ref, picks.arm, part * PRODUCTS, min(most, PRODUCTS))
            tile.put_rows(out_ref, total, width, part * count)
            return nothing

        picks.each_tile(write, None, lax.rem(number, shares), shares)

    grid = (network.spec.arms * shares, parts)
    call = _call(network, program, FIRST_LAYER, [parts * count * width], grid)
    return jnp.sum(call(theta, rows, arms)[0].reshape(parts, -1), axis=0)


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


def _tiles(count: int, threads: TileThreads) -> int:
    return -(-count // threads.rows)
