"""What a traced function consists of: equations, each an operation of JAX."""

from collections.abc import Iterator, Sequence
from typing import Any

from jax.extend.core import Literal

#: Operations that repeat other ones.
LOOPS = frozenset(["scan", "while"])


def every_equation(jaxpr: Any) -> Iterator[Any]:
    """Those of a traced function, and of all that it calls."""
    for equation in getattr(jaxpr, "jaxpr", jaxpr).eqns:
        yield equation
        for parameter in equation.params.values():
            for inner in parameter if isinstance(parameter, tuple) else (parameter,):
                if hasattr(inner, "eqns"):
                    yield from every_equation(inner)


def used_arguments(jaxpr: Any) -> list[bool]:
    """Which arguments of a traced function its results depend on."""
    used = {
        atom for equation in needed_equations(jaxpr.jaxpr) for atom in _variables(equation.invars)
    }
    used.update(_variables(jaxpr.jaxpr.outvars))
    return [atom in used for atom in jaxpr.jaxpr.invars]


def _variables(atoms: Sequence[Any]) -> list[Any]:
    return [atom for atom in atoms if not isinstance(atom, Literal)]


def needed_equations(jaxpr: Any) -> list[Any]:
    """The equations that the results depend on: loops as early as can be, all others after them.

    What is computed before a loop and used after it would take up registers all the while.
    """
    wanted, needed = set(_variables(jaxpr.outvars)), []
    for equation in reversed(jaxpr.eqns):
        if any(atom in wanted for atom in equation.outvars):
            wanted.update(_variables(equation.invars))
            needed.append(equation)
    makers = {atom: equation for equation in needed for atom in equation.outvars}
    order: dict[int, Any] = {}

    def put(equation: Any) -> None:
        if id(equation) not in order:
            for atom in _variables(equation.invars):
                if atom in makers:
                    put(makers[atom])
            order[id(equation)] = equation

    for equation in sorted(needed[::-1], key=lambda one: one.primitive.name not in LOOPS):
        put(equation)
    return list(order.values())
