"""Functions that an upper room provides to a lower one, by name.

A lower room must not import an upper one. It names the modules that register the functions, and
those are imported at the first look.
"""

import importlib
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

from feelgood.core.errors import FeelgoodError, did_you_mean, shown
from feelgood.core.spec import Spec

F = TypeVar("F", bound=Callable[..., Any])


class Lookup(Generic[F]):
    """Names to functions. `kind` says what they are, `modules` are those that register them."""

    def __init__(self, kind: str, *modules: str) -> None:
        self.kind = kind
        self._modules = modules
        self._functions: dict[str, F] = {}

    def register(self, name: str) -> Callable[[F], F]:
        """Function decorator: provide it under this name."""

        def keep(function: F) -> F:
            self._functions[name] = function
            return function

        return keep

    def __iter__(self) -> Iterator[str]:
        for module in self._modules:
            importlib.import_module(module)
        return iter(tuple(self._functions))

    def __getitem__(self, name: str) -> F:
        known = tuple(self)
        if name not in known:
            raise FeelgoodError(f"unknown {self.kind} {shown(name)}: {did_you_mean(name, known)}")
        return self._functions[name]


#: Presets: settings of many agents that go together under a name, such as `paper`. A function
#: makes them from the agent, the testbed, its shape and the rounds.
PRESETS: Lookup[Callable[[str, str, Spec, int], dict[str, Any]]] = Lookup(
    "preset", "feelgood.paper.presets", "feelgood.paper.released_presets"
)


def preset_settings(
    preset: str, agent: str, testbed: str, spec: Spec, rounds: int
) -> dict[str, Any]:
    """The settings of `agent` in this preset; a clear error for an unknown preset."""
    return PRESETS[preset](agent, testbed, spec, rounds)
