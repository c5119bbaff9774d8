"""A traced function written out: every small array becomes as many single numbers.

A thread of an accelerator works on single numbers and has no use for an array of four by five. So a
function that was traced for such arrays is evaluated here operation by operation, and each array is
a list of numbers. What only moves numbers about, such as a slice, costs nothing.

Two kinds of array are not taken apart:

- A **stored** one stays in memory. Its numbers are read where they are used, and a part of it by a
  dynamic slice, so that it may be large.
- A **tile** is the last axis of an array, if that has a certain length: its numbers are spread over
  the threads, and one operation is for all of them.

A function may use all operations that `WriteOut` has a rule for; others raise `CannotWriteOut`.
"""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.core import Literal

from feelgood.numerics.equations import LOOPS, every_equation, needed_equations
from feelgood.numerics.machines import Machine
from feelgood.numerics.written_arrays import (
    CannotWriteOut,
    Kept,
    Product,
    Stored,
    Written,
    computed,
    number_of,
    over_tile,
)

#: The most numbers that one array may have, besides its tile; more would take long to compile.
MOST_NUMBERS = 2048
#: Operations on the numbers at the same place of all operands.
_AT_ONE_PLACE = """
    abs add and ceil clamp convert_element_type cos div eq exp exp2 expm1 floor ge gt integer_pow
    is_finite le log log1p logistic lt max min mul ne neg not or pow rem rsqrt select_n sign sin
    sqrt square sub tanh xor
"""
ELEMENTWISE = frozenset(_AT_ONE_PLACE.split())
#: Operations that give what they get.
IDENTITIES = frozenset(["copy", "optimization_barrier", "stop_gradient"])
REDUCTIONS: dict[str, Callable[..., Any]] = {
    "reduce_and": lax.bitwise_and,
    "reduce_max": lax.max,
    "reduce_min": lax.min,
    "reduce_or": lax.bitwise_or,
    "reduce_sum": lax.add,
}
_FLAG = jax.ShapeDtypeStruct((), jnp.bool_)


class WriteOut:
    """Evaluates traced functions on single numbers; `tile` is the length of a tile.

    Loops that have another loop in them read up to `kept` numbers of memory once and for all.
    """

    def __init__(self, tile: int, machine: Machine, kept: int) -> None:
        self.tile, self.machine, self.kept = tile, machine, kept

    def evaluate(self, jaxpr: Any, values: Sequence[Kept]) -> list[Kept]:
        """The function of these values; what its results do not need is left out."""
        plain = jaxpr.jaxpr if hasattr(jaxpr, "jaxpr") else jaxpr
        constants = [self._constant(value) for value in getattr(jaxpr, "consts", ())]
        known: dict[Any, Kept] = dict(zip(plain.constvars, constants, strict=True))
        known.update(zip(plain.invars, values, strict=True))

        def read(atom: Any) -> Kept:
            return self._constant(atom.val) if isinstance(atom, Literal) else known[atom]

        for equation in needed_equations(plain):
            results = self._apply(equation, [read(atom) for atom in equation.invars])
            known.update(zip(equation.outvars, results, strict=True))
        return [read(atom) for atom in plain.outvars]

    def numbers(self, value: Kept, aval: Any) -> list[Any]:
        """All numbers of a value, read, each with the type and the tile of its array."""
        shape = (self.tile,) * self._tiled(aval.shape)
        read = [number_of(item, aval.dtype) for item in self._entries(value).items]
        return [over_tile(x if isinstance(x, jax.Array) else computed(x), shape) for x in read]

    def _tiled(self, shape: tuple[int, ...]) -> bool:
        return bool(shape) and shape[-1] == self.tile

    def _lead(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """A shape without the tile."""
        lead = shape[:-1] if self._tiled(shape) else shape
        if math.prod(lead) > MOST_NUMBERS:
            raise CannotWriteOut(f"an array of shape {shape}")
        return tuple(lead)

    def _entries(self, value: Kept) -> Written:
        """The numbers of a value, some of which may still be in memory."""
        if isinstance(value, Stored):
            if self._tiled(value.shape) or math.prod(value.shape) > MOST_NUMBERS:
                raise CannotWriteOut(f"an array of shape {value.shape} is used whole")
            return value.entries()
        return value

    def _constant(self, value: Any) -> Written:
        if isinstance(value, jax.core.Tracer) or self._tiled(np.shape(value)):
            raise CannotWriteOut("a value that is neither an argument nor a small constant")
        array = np.asarray(value)
        return Written(self._lead(array.shape), list(array.reshape(-1)))

    # ---- rules ----------------------------------------------------------------------------

    def _apply(self, equation: Any, inputs: list[Kept]) -> list[Kept]:
        name, parameters = equation.primitive.name, equation.params
        if name in IDENTITIES:
            return inputs
        if name in ELEMENTWISE:
            return [self._elementwise(equation, inputs)]
        if name in REDUCTIONS:
            return [self._reduction(equation, self._entries(inputs[0]))]
        called = parameters.get("name", "") if name in ("jit", "pjit") else ""
        rule = getattr(self, f"write_{name}", getattr(self, f"call_{called}", None))
        if rule is not None:
            return rule(equation, *inputs)
        inner = parameters.get("call_jaxpr", parameters.get("jaxpr"))
        if inner is None:
            raise CannotWriteOut(f"the operation {name}")
        return self.evaluate(inner, inputs)

    def _elementwise(self, equation: Any, inputs: list[Kept]) -> Written:
        out = equation.outvars[0].aval.shape
        avals = [atom.aval for atom in equation.invars]
        operands = [
            self._stretched(x, aval.shape, range(len(out) - aval.ndim, len(out)), out).items
            for x, aval in zip(inputs, avals, strict=True)
        ]
        types = [aval.dtype for aval in avals]
        items = [self._at(equation, place, types) for place in zip(*operands, strict=True)]
        return Written(self._lead(out), items)

    def _at(self, equation: Any, items: tuple[Any, ...], types: list[Any]) -> Any:
        """An operation at one place of its operands; now, if these are known."""
        name, parameters = equation.primitive.name, equation.params
        if name == "add" and any(isinstance(item, Product) for item in items):
            product, other = items if isinstance(items[0], Product) else items[::-1]
            other = over_tile(number_of(other, types[0]), (self.tile,))
            return self.machine.multiply_add(product.left, product.right, other)
        parts = [number_of(item, dtype) for item, dtype in zip(items, types, strict=True)]
        if not any(isinstance(part, jax.Array) for part in parts):
            with jax.ensure_compile_time_eval():
                return np.asarray(equation.primitive.bind(*parts, **parameters))[()]
        if name == "convert_element_type" and types == [jnp.bool_]:
            return jnp.where(parts[0], *np.asarray([1, 0], parameters["new_dtype"]))
        common = np.broadcast_shapes(*(np.shape(part) for part in parts))
        parts = [over_tile(part, common) for part in parts]
        if name == "mul" and common and types[0] == jnp.float32:
            return Product(*parts)
        return equation.primitive.bind(*parts, **parameters)

    def _stretched(
        self, x: Kept, shape: tuple[int, ...], axes: Sequence[int], out: tuple[int, ...]
    ) -> Written:
        """An array of this shape laid along these axes of a larger one.

        A single number is not spread over a tile: all threads share it.
        """
        lead = self._lead(out)
        sizes = [1] * len(lead)
        for axis, size in zip(axes, shape, strict=True):
            if axis < len(lead):
                sizes[axis] = size
        return self._entries(x).moved(lambda at: np.broadcast_to(at.reshape(sizes), lead))

    def _reduction(self, equation: Any, x: Written) -> Written:
        name, aval = equation.primitive.name, equation.invars[0].aval
        lead = [axis for axis in equation.params["axes"] if axis < len(x.shape)]
        shape = tuple(n for axis, n in enumerate(x.shape) if axis not in lead)
        grouped = Written(x.shape, self.numbers(x, aval)).moved(
            lambda at: np.moveaxis(at, lead, range(-len(lead), 0)).reshape(*shape, -1)
        )
        size = grouped.shape[-1]
        starts = range(0, len(grouped.items), size)
        out = [functools.reduce(REDUCTIONS[name], grouped.items[k : k + size]) for k in starts]
        if len(lead) == len(equation.params["axes"]):
            return Written(shape, out)
        if name != "reduce_sum":
            raise CannotWriteOut(f"{name} over a tile")
        return Written(shape, self.machine.sums(out))

    def write_broadcast_in_dim(self, equation: Any, x: Kept, *_: Kept) -> list[Kept]:
        axes = equation.params["broadcast_dimensions"]
        shape, out = equation.invars[0].aval.shape, equation.outvars[0].aval.shape
        return [self._stretched(x, shape, axes, out)]

    def write_reshape(self, equation: Any, x: Kept, *_: Kept) -> list[Kept]:
        before, after = equation.invars[0].aval.shape, equation.outvars[0].aval.shape
        if self._tiled(before) != self._tiled(after):
            raise CannotWriteOut("a tile that takes another shape")
        return [self._entries(x).moved(lambda at: at.reshape(self._lead(after)))]

    write_squeeze = write_reshape

    def write_transpose(self, equation: Any, x: Kept) -> list[Kept]:
        order = list(equation.params["permutation"])
        if self._tiled(equation.invars[0].aval.shape) and order.pop() != len(order):
            raise CannotWriteOut("a tile that takes another place")
        return [self._entries(x).moved(lambda at: np.transpose(at, order))]

    def write_slice(self, equation: Any, x: Kept) -> list[Kept]:
        start, stop = equation.params["start_indices"], equation.params["limit_indices"]
        steps = equation.params["strides"] or (1,) * len(start)
        tiled = self._tiled(equation.invars[0].aval.shape)
        if tiled and (start[-1], stop[-1], steps[-1]) != (0, self.tile, 1):
            raise CannotWriteOut("a part of a tile")
        numbers = self._entries(x)
        cut = tuple(map(slice, start, stop, steps))[: len(numbers.shape)]
        return [numbers.moved(lambda at: at[cut])]

    def write_concatenate(self, equation: Any, *parts: Kept) -> list[Kept]:
        axis = equation.params["dimension"]
        return [self._joined(equation, parts, axis, lambda at: np.concatenate(at, axis))]

    def write_stack(self, equation: Any, *parts: Kept) -> list[Kept]:
        axis = equation.params["axis"]
        return [self._joined(equation, parts, axis, lambda at: np.stack(at, axis))]

    def write_unstack(self, equation: Any, x: Kept) -> list[Kept]:
        """An array taken apart along an axis: what iterating over an array is from JAX 0.11 on."""
        axis, numbers = equation.params["axis"], self._entries(x)
        if axis >= len(numbers.shape):
            raise CannotWriteOut("a tile taken apart")
        return [
            numbers.moved(functools.partial(np.take, indices=k, axis=axis))
            for k in range(numbers.shape[axis])
        ]

    def _joined(
        self,
        equation: Any,
        parts: Sequence[Kept],
        axis: int,
        join: Callable[[list[np.ndarray]], np.ndarray],
    ) -> Written:
        """Several arrays as one, by a function of their positions in it."""
        if axis >= len(self._lead(equation.outvars[0].aval.shape)):
            raise CannotWriteOut("tiles one after the other")
        every = [self._entries(part) for part in parts]
        items = [item for numbers in every for item in numbers.items]
        ends = np.cumsum([len(numbers.items) for numbers in every])[:-1]
        pieces = np.split(np.arange(len(items)), ends)
        places = [p.reshape(numbers.shape) for p, numbers in zip(pieces, every, strict=True)]
        return Written((len(items),), items).moved(lambda _: join(places))

    def write_iota(self, equation: Any) -> list[Kept]:
        axis, dtype = equation.params["dimension"], equation.params["dtype"]
        lead = self._lead(equation.params["shape"])
        if axis == len(lead):
            return [Written(lead, [lax.iota(dtype, self.tile)] * math.prod(lead))]
        return [Written(lead, list(np.indices(lead)[axis].astype(dtype).reshape(-1)))]

    def write_dynamic_slice(self, equation: Any, x: Kept, *starts: Kept) -> list[Kept]:
        from jax.experimental import pallas

        if not isinstance(x, Stored):
            raise CannotWriteOut("a dynamic slice of what is not in memory")
        sizes = equation.params["slice_sizes"]
        lead, first = self._lead(sizes), []
        for start, size, length in zip(starts, sizes, x.shape, strict=True):
            [item] = self._entries(start).items
            inside = jnp.clip(number_of(item, jnp.int32), 0, length - size)
            first.append(0 if size == length else inside)
        tile = [pallas.ds(first[-1], self.tile)] if len(lead) < len(sizes) else []
        items = []
        for index in np.ndindex(lead):
            at = [start + k for start, k in zip(first, index, strict=False)]
            items.append(x.ref[(*at, *tile)])
        return [Written(lead, items)]

    # ---- functions that a device has a better way for --------------------------------------------

    def call_read_tiles(self, equation: Any, x: Kept, start: Kept) -> list[Kept]:
        """See `numerics.chain_programs`."""
        from jax.experimental import pallas

        *lead, together, at_once, _ = equation.outvars[0].aval.shape
        if not isinstance(x, Stored):
            raise CannotWriteOut("tiles of what is not in memory")
        size = at_once * self.tile
        [item] = self._entries(start).items
        first = jnp.clip(number_of(item, jnp.int32), 0, x.shape[-1] - together * size)
        items = []
        for *at, k in np.ndindex(*lead, together):
            several = x.ref[(*at, pallas.ds(first + k * size, size))]
            items += self.machine.apart(several, at_once)
        return [Written((*lead, together, at_once), items)]

    def call_add_at_first(self, equation: Any, *inputs: Kept) -> list[Kept]:
        """See `targets.best_arms`."""
        out = equation.outvars[0].aval.shape
        if not self._tiled(out):
            return self.evaluate(equation.params["jaxpr"], inputs)
        avals = [atom.aval for atom in equation.invars]
        numbers = [self.numbers(x, aval) for x, aval in zip(inputs, avals, strict=True)]
        return [Written(self._lead(out), self.machine.add_at_first(*numbers))]

    # ---- loops and branches -----------------------------------------------------------------

    def write_while(self, equation: Any, *inputs: Kept) -> list[Kept]:
        p = equation.params
        first, second = p["cond_nconsts"], p["cond_nconsts"] + p["body_nconsts"]
        avals = [atom.aval for atom in equation.outvars]

        def goes_on(flat: list[Any]) -> Any:
            values = [*inputs[:first], *self._together(flat, avals)]
            [answer] = self._flat(self.evaluate(p["cond_jaxpr"], values), [_FLAG])
            return answer

        body = self._body(p["body_jaxpr"], inputs[first:second], avals)
        flat = lax.while_loop(goes_on, body, self._flat(inputs[second:], avals))
        return self._together(flat, avals)

    def write_scan(self, equation: Any, *inputs: Kept) -> list[Kept]:
        """A loop that carries something along, and neither takes in nor puts out by turns."""
        p, avals = equation.params, [atom.aval for atom in equation.outvars]
        inner, constants = p["jaxpr"].jaxpr, len(inputs) - len(avals)
        shapes = [atom.aval.shape for atom in (*equation.invars, *equation.outvars)]
        if p["reverse"] or shapes != [x.aval.shape for x in (*inner.invars, *inner.outvars)]:
            raise CannotWriteOut("a scan over an array")
        body = self._body(p["jaxpr"], inputs[:constants], avals)
        start = self._flat(inputs[constants:], avals)
        flat = lax.fori_loop(0, p["length"], lambda _, carried: body(carried), start)
        return self._together(flat, avals)

    def write_cond(self, equation: Any, index: Kept, *inputs: Kept) -> list[Kept]:
        avals = [atom.aval for atom in equation.outvars]
        [which] = self._flat([index], [equation.invars[0].aval])

        def of(branch: Any) -> Callable[[], list[Any]]:
            return lambda: self._flat(self.evaluate(branch, inputs), avals)

        flat = lax.switch(which, [of(branch) for branch in equation.params["branches"]])
        return self._together(flat, avals)

    def _body(
        self, jaxpr: Any, constants: Sequence[Kept], avals: Sequence[Any]
    ) -> Callable[[list[Any]], list[Any]]:
        """One turn of a loop."""
        nested = any(equation.primitive.name in LOOPS for equation in every_equation(jaxpr))
        forgets = nested and self._numbers_read(jaxpr, constants) > self.kept

        def body(flat: list[Any]) -> list[Any]:
            if forgets:  # the inner loop needs the registers
                self.machine.forget()
            values = [*constants, *self._together(flat, avals)]
            return self._flat(self.evaluate(jaxpr, values), avals)

        return body

    def _numbers_read(self, jaxpr: Any, constants: Sequence[Kept]) -> int:
        """How many numbers of memory a function reads one by one."""
        inner = getattr(jaxpr, "jaxpr", jaxpr)
        read = {
            atom
            for equation in needed_equations(inner)
            if equation.primitive.name not in LOOPS | {"dynamic_slice"}
            for atom in equation.invars
            if not isinstance(atom, Literal)
        }
        stored = zip(inner.invars, constants, strict=False)
        return sum(math.prod(x.shape) for var, x in stored if var in read and isinstance(x, Stored))

    def _flat(self, values: Sequence[Kept], avals: Sequence[Any]) -> list[Any]:
        """The numbers of all values."""
        parts = [self.numbers(value, aval) for value, aval in zip(values, avals, strict=True)]
        return [number for part in parts for number in part]

    def _together(self, flat: Sequence[Any], avals: Sequence[Any]) -> list[Kept]:
        """The other way round."""
        shapes = [self._lead(aval.shape) for aval in avals]
        ends = np.cumsum([math.prod(shape) for shape in shapes])
        parts = [list(flat[end - math.prod(s) : end]) for s, end in zip(shapes, ends, strict=True)]
        return [Written(shape, items) for shape, items in zip(shapes, parts, strict=True)]
