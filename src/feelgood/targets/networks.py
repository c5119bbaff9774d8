"""Reward models that are networks: an MLP f_θ(x, a) with one number as output.

Arm a sees x ⊗ e_a, the context in the block of its arm and zeros elsewhere. That feature is never
built: the first layer keeps one weight block per arm, so its output for arm a is x W₁[a] + b₁. One
matrix product with all blocks side by side serves all arms. Where each arm shows a context of
its own, there is a single block. Hidden layers have biases, the output has none.

All parameters of a network are one flat vector, so that samplers need not know what they move.

A first layer of many inputs is most of that vector, and copies of it take as long as products with
it. A *wide* network is therefore moved in a form without any: zeros behind the vector make it a
matrix with the columns of W₁, whose last rows hold all other parameters. Contexts have zeros there,
so the product with the whole matrix is that with W₁, and the gradient has the form of the vector.

Everything here is written for one chain; the engine lifts it over chains with `vmap`.
"""

import itertools
import math
from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

from feelgood.core.errors import FeelgoodError
from feelgood.core.settings import setting
from feelgood.core.spec import Spec
from feelgood.numerics import lanes
from feelgood.numerics.keys import AnyKey
from feelgood.targets import picked_blocks

Activation = Literal["relu", "leaky"]
#: Slope of the leaky ReLU below 0.
LEAK = 0.01
#: Sums of up to so many terms are fused into what uses them.
FUSED_TERMS = 64
#: A network is wide with so many inputs, if its first layer has so many times the other parameters.
MANY_INPUTS, FIRST_SHARE = 256, 8
#: The matrix of a wide network has a multiple of so many rows, for products cut into tiles.
ROWS = 32
#: How layer widths are written in a setting, and in words.
WIDTHS = (r"[1-9]\d{0,5}(-[1-9]\d{0,5}){0,15}", "widths of hidden layers such as 100 or 100-50-25")


def layers_setting(default: str) -> Any:
    """Declare the setting of the hidden layers' widths."""
    return setting(default, "widths of the hidden layers, from the input on", form=WIDTHS)


def parse_layers(text: str) -> tuple[int, ...]:
    """`"100-50"` as (100, 50)."""
    return tuple(int(width) for width in text.split("-"))


class Weights(NamedTuple):
    """The flat vector, cut into layers: W₁ with all blocks side by side, the others, the output.

    In a wide network the whole vector stands for W₁, with the other parameters below it.
    """

    first: Float[Array, "dim columns"]
    dense: tuple[Float[Array, "inputs outputs"], ...]
    biases: tuple[Float[Array, " outputs"], ...]
    output: Float[Array, " last"]


class Tape(NamedTuple):
    """What a forward pass leaves for the backward pass.

    There is one arm where only the picked one was evaluated, and `picked` then says which it was.
    """

    inputs: Float[Array, "rows ... width"]
    hidden: tuple[Float[Array, "rows arms _"], ...]
    picked: Int[Array, " rows"] | None


class Factors(NamedTuple):
    """∇f of every arm, layer by layer, as factors: ∂f/∂W_l = inputs_l ⊗ deltas_l.

    The gradient for arm a is 0 in the other arms' first blocks, which is not stored.
    """

    inputs: tuple[Float[Array, "arms _"], ...]
    deltas: tuple[Float[Array, "arms _"], ...]
    last: Float[Array, "arms width"]


def _alone(total: Float[Array, " width"], terms: int) -> Float[Array, " width"]:
    """A sum of many terms as a reduction of its own.

    Fused into the update of the parameters, each entry would be one thread's long loop.
    """
    return lax.optimization_barrier(total) if terms > FUSED_TERMS else total


class Network(eqx.Module):
    """The shape of an MLP on one bandit problem."""

    spec: Spec = eqx.field(static=True)
    layers: tuple[int, ...] = eqx.field(static=True)
    activation: Activation = eqx.field(static=True, default="leaky")
    #: Whether products keep all float32 digits on accelerators, as a Metropolis filter needs.
    exact: bool = eqx.field(static=True, default=True)

    def __check_init__(self) -> None:
        if not self.layers or min(self.layers) < 1:
            raise FeelgoodError(
                f"layers = {self.layers} make no network: give at least one width of at least 1."
            )

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Shapes of all parts in the order of the flat vector: W₁, others, biases, output."""
        first = (self.spec.dim, self.spec.blocks * self.layers[0])
        dense = itertools.pairwise(self.layers)
        return (first, *dense, *((width,) for width in self.layers), (self.layers[-1],))

    @property
    def parameters(self) -> int:
        """Length of the flat vector."""
        return sum(math.prod(shape) for shape in self.shapes)

    @property
    def wide(self) -> bool:
        """Whether the first layer has so many inputs that it is not copied."""
        first, *others = (math.prod(shape) for shape in self.shapes)
        most = not self.spec.shared and first >= FIRST_SHARE * sum(others)
        return most and self.spec.dim >= MANY_INPUTS

    @property
    def columns(self) -> int:
        """Of W₁."""
        return self.spec.blocks * self.layers[0]

    @property
    def room(self) -> int:
        """Length of the vector in the form in which it is moved."""
        return self.width * self.columns if self.wide else self.parameters

    def widened(self, vector: Float[Array, " short ..."]) -> Float[Array, " room ..."]:
        """A vector, or what has its leading axis, in the form in which it is moved."""
        extra = self.room - len(vector)
        return jnp.pad(vector, [(0, extra)] + [(0, 0)] * (vector.ndim - 1)) if extra else vector

    def split(self, theta: Float[Array, " parameters"]) -> Weights:
        """The vector as layers, in either form."""
        ends = list(itertools.accumulate(math.prod(shape) for shape in self.shapes))
        first, *parts = [
            theta[end - math.prod(shape) : end].reshape(shape)
            for end, shape in zip(ends, self.shapes, strict=True)
        ]
        if self.wide:
            first = self.widened(theta).reshape(self.width, self.columns)
        depth = len(self.layers) - 1
        return Weights(first, tuple(parts[:depth]), tuple(parts[depth:-1]), parts[-1])

    def join(self, weights: Weights) -> Float[Array, " parameters"]:
        """The layers as a vector."""
        parts = (weights.first[: self.spec.dim], *weights.dense, *weights.biases, weights.output)
        return jnp.concatenate([part.reshape(-1) for part in parts])

    def init(self, key: AnyKey) -> Float[Array, " parameters"]:
        """Weights and biases of a layer uniform in ±1/√(inputs), the inputs of x ⊗ e_a counted."""
        fans = (self.spec.parameters, *self.layers[:-1])
        bounds = [1.0 / math.sqrt(fan) for fan in (*fans, *fans, self.layers[-1])]
        scale = jnp.concatenate(
            [
                jnp.full(math.prod(shape), bound)
                for shape, bound in zip(self.shapes, bounds, strict=True)
            ]
        )
        return scale * (2.0 * lanes.uniform(key, self.parameters) - 1.0)

    # ---- forward and back ---------------------------------------------------------------

    @property
    def row_by_row(self) -> bool:
        """Whether rows that need one block of the first layer are taken one after the other."""
        narrow = self.width <= picked_blocks.MOST_INPUTS_OF_A_ROW and not self.spec.shared
        return narrow and not self.spec.layout.reads_all

    def _onehot(self, picked: Int[Array, " rows"]) -> Float[Array, "rows all_arms 1"]:
        return lanes.one_hot(picked, self.spec.arms).T[:, :, None]

    def _product(self, a: Array, b: Array) -> Array:
        return jnp.matmul(a, b, precision=lax.Precision.HIGHEST if self.exact else None)

    def activate(self, before: Array) -> Array:
        floor = 0.0 if self.activation == "relu" else LEAK * before
        return jnp.maximum(before, floor)

    def slope(self, after: Array) -> Array:
        """φ' from φ(z), which has the sign of z."""
        return jnp.where(after > 0, 1.0, 0.0 if self.activation == "relu" else LEAK)

    def _first(self, weights: Weights) -> Float[Array, "width columns"]:
        """W₁ with the bias below it, for rows that end with a 1 and zeros; a wide one as it is."""
        if self.wide:
            return weights.first
        bias = jnp.tile(weights.biases[0], self.spec.blocks)[None]
        padding = jnp.zeros((self.width - self.spec.dim - 1, bias.shape[1]))
        return jnp.concatenate([weights.first, bias, padding])

    def forward(
        self,
        weights: Weights,
        rows: Float[Array, "rows ... width"],
        picked: Int[Array, " rows"] | None = None,
    ) -> tuple[Float[Array, "rows arms"], Tape]:
        """f of all arms, or of one picked for each row: then `arms` is 1.

        `rows` are contexts as `row` makes them: [rows, width], or [rows, arms, width] where each
        arm shows its own.
        """
        count, spec = len(rows), self.spec
        if spec.shared and picked is not None:
            rows = jnp.sum(rows * self._onehot(picked), axis=1, keepdims=True)
        first = self._first(weights)
        if picked is not None and self.row_by_row:
            blocks = first.reshape(self.width, spec.blocks, -1)
            before = picked_blocks.block_products(blocks, rows, picked)[:, None]
        else:
            before = self._product(rows, first)
            before = before if spec.shared else before.reshape(count, spec.arms, -1)
            if picked is not None and not spec.shared:
                before = jnp.sum(before * self._onehot(picked), axis=1, keepdims=True)
        if self.wide:
            before = before + weights.biases[0]
        hidden = [self.activate(before)]
        for dense, bias in zip(weights.dense, weights.biases[1:], strict=True):
            arms, width = hidden[-1].shape[1:]
            flat = self._product(hidden[-1].reshape(count * arms, width), dense)
            hidden.append(self.activate(flat.reshape(count, arms, -1) + bias))
        # Flat: with an axis of one arm in between, a processor takes several times as long.
        flat = hidden[-1].reshape(-1, self.layers[-1])
        scores = jnp.sum(flat * weights.output, axis=-1).reshape(count, -1)
        return scores, Tape(rows, tuple(hidden), picked)

    def backward(
        self, weights: Weights, tape: Tape, slopes: Float[Array, "rows arms"]
    ) -> Float[Array, " parameters"]:
        """Σ over rows and arms of slope · ∇f; of a wide network, with zeros behind.

        A rectified layer is homogeneous, φ(z) = φ'(z) z. With E = slope · φ' of the last hidden
        layer and G = inputsᵀE its product with that layer's inputs, ∂/∂W is G times the output
        weights. ∂/∂output is the column sum of W ∘ G, without a second pass over the rows.
        """
        last = slopes[:, :, None] * self.slope(tape.hidden[-1])
        deltas = self._deltas(weights, tape, last * weights.output)
        dense, biases = [], []
        for depth in range(len(self.layers) - 1, 0, -1):
            top = depth == len(self.layers) - 1
            after = tape.hidden[depth - 1]
            delta = (last if top else deltas[depth]).reshape(-1, self.layers[depth])
            gradient = self._product(after.reshape(-1, after.shape[-1]).T, delta)
            bias = jnp.sum(delta, axis=0)
            if top:
                output = jnp.sum(weights.dense[-1] * gradient, axis=0) + weights.biases[-1] * bias
                gradient, bias = gradient * weights.output, bias * weights.output
            dense.append(gradient)
            biases.append(bias)
        shallow = len(self.layers) == 1
        back = last if shallow else deltas[0]
        gradient = self._first_gradient(tape, back)
        if shallow:
            system = self._first(weights).reshape(gradient.shape)
            output = _alone(jnp.sum(system * gradient, axis=(0, 1)), gradient[:, :, 0].size)
            gradient = gradient * weights.output
        if self.wide:
            bias = _alone(jnp.sum(back, axis=(0, 1)), back[:, :, 0].size)
            if shallow:
                output, bias = output + weights.biases[0] * bias, bias * weights.output
            parts = (*dense[::-1], bias, *biases[::-1], output)
            others = jnp.concatenate([part.reshape(-1) for part in parts])
            start = self.spec.dim * self.columns
            return lax.dynamic_update_slice(gradient.reshape(-1), others, (start,))
        bias = _alone(jnp.sum(gradient[self.spec.dim], axis=0), self.spec.blocks)
        return self.join(
            Weights(
                first=gradient[: self.spec.dim].reshape(self.spec.dim, -1),
                dense=tuple(dense[::-1]),
                biases=(bias, *biases[::-1]),
                output=output,
            )
        )

    def _first_gradient(
        self, tape: Tape, deltas: Float[Array, "rows arms _"]
    ) -> Float[Array, "width blocks _"]:
        inputs, picked = tape.inputs.reshape(-1, self.width), tape.picked
        if picked is not None and self.row_by_row:
            return picked_blocks.block_sums(inputs, deltas[:, 0], picked, self.spec.blocks)
        if picked is not None and not self.spec.shared:
            deltas = deltas * self._onehot(picked)
        gradient = self._product(inputs.T, deltas.reshape(len(inputs), -1))
        return gradient.reshape(self.width, self.spec.blocks, self.layers[0])

    def _deltas(
        self, weights: Weights, tape: Tape, last: Float[Array, "rows arms _"]
    ) -> list[Float[Array, "rows arms _"]]:
        """From the last hidden layer's ∂/∂z (before the activation) to that of all, in order."""
        out = [last]
        for dense, after in zip(reversed(weights.dense), reversed(tape.hidden[:-1]), strict=True):
            rows, arms, width = out[-1].shape
            back = self._product(out[-1].reshape(rows * arms, width), dense.T)
            out.append(back.reshape(rows, arms, -1) * self.slope(after))
        return out[::-1]

    # ---- one context --------------------------------------------------------------------

    @property
    def width(self) -> int:
        """Length of a row: the context, a 1 that carries the bias, zeros to a multiple of 4.

        In a wide network there is no 1, and as many zeros as the matrix has rows below W₁.
        """
        if self.wide:
            return -(-self.parameters // (ROWS * self.columns)) * ROWS
        return -(-(self.spec.dim + 1) // 4) * 4

    def row(self, context: Float[Array, "..."]) -> Float[Array, "... width"]:
        """A context as an agent sees it, as a row that the network takes."""
        features = context.T
        if self.wide:
            return jnp.pad(features, (0, self.width - self.spec.dim))
        one = jnp.ones((*features.shape[:-1], 1))
        padding = jnp.zeros((*features.shape[:-1], self.width - self.spec.dim - 1))
        return jnp.concatenate([features, one, padding], axis=-1)

    def scores(
        self, theta: Float[Array, " parameters"], context: Float[Array, "..."]
    ) -> Float[Array, " all_arms"]:
        """f of every arm in one context."""
        return self.forward(self.split(theta), self.row(context)[None])[0][0]

    def features(
        self, theta: Float[Array, " parameters"], context: Float[Array, "..."]
    ) -> Float[Array, "all_arms width"]:
        """The last hidden layer of every arm in one context: f is linear in it."""
        return self.forward(self.split(theta), self.row(context)[None])[1].hidden[-1][0]

    def factors(
        self, theta: Float[Array, " parameters"], context: Float[Array, "..."]
    ) -> tuple[Float[Array, " all_arms"], Factors]:
        """f of every arm in one context, and ∇f of every arm as factors."""
        weights = self.split(theta)
        scores, tape = self.forward(weights, self.row(context)[None])
        last = weights.output * self.slope(tape.hidden[-1])
        deltas = self._deltas(weights, tape, last)
        features = tape.inputs[0, ..., : self.spec.dim]
        inputs = jnp.broadcast_to(features, (self.spec.arms, self.spec.dim))
        return scores[0], Factors(
            inputs=(inputs, *(hidden[0] for hidden in tape.hidden[:-1])),
            deltas=tuple(delta[0] for delta in deltas),
            last=tape.hidden[-1][0],
        )

    def squared_norms(
        self, factors: Factors, scales: Float[Array, " parameters"]
    ) -> Float[Array, " all_arms"]:
        """Σ_i scale_i (∂f/∂θ_i)² of every arm."""
        weights = self.split(scales)
        inputs = [part**2 for part in factors.inputs]
        deltas = [part**2 for part in factors.deltas]
        first = weights.first[: self.spec.dim].reshape(self.spec.dim, self.spec.blocks, -1)
        blocks = jnp.broadcast_to(first, (self.spec.dim, self.spec.arms, first.shape[-1]))
        total = jnp.einsum("ad,dah,ah->a", inputs[0], blocks, deltas[0])
        for dense, before, delta in zip(weights.dense, inputs[1:], deltas[1:], strict=True):
            total = total + jnp.einsum("ai,ij,aj->a", before, dense, delta)
        for bias, delta in zip(weights.biases, deltas, strict=True):
            total = total + delta @ bias
        return total + factors.last**2 @ weights.output

    def squared_gradient(
        self, factors: Factors, onehot: Float[Array, " all_arms"]
    ) -> Float[Array, " parameters"]:
        """(∂f/∂θ_i)² of one arm (one-hot), for every parameter."""
        inputs = [onehot @ part**2 for part in factors.inputs]
        deltas = [onehot @ part**2 for part in factors.deltas]
        block = jnp.ones(1) if self.spec.shared else onehot
        first = inputs[0][:, None, None] * block[:, None] * deltas[0]
        return self.join(
            Weights(
                first=first.reshape(self.spec.dim, -1),
                dense=tuple(
                    jnp.outer(before, delta)
                    for before, delta in zip(inputs[1:], deltas[1:], strict=True)
                ),
                biases=tuple(deltas),
                output=onehot @ factors.last**2,
            )
        )
