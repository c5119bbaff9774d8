"""Feel-Good Thompson Sampling and MCMC Thompson Sampling for contextual bandits, in JAX.

The public names stand in `__init__.pyi`, one line each. A name is imported when it is first used,
so that `import feelgood` and the command line's help need not wait for JAX.
"""

import importlib
import sys
from types import ModuleType
from typing import Any

from feelgood.core.flags import compile_small_loops_whole

compile_small_loops_whole()

__version__ = "0.2.0"

#: The module of each public name: lines such as `from feelgood.api.running import run as run`.
with open(f"{__file__.removesuffix('.py')}.pyi", encoding="utf-8") as _lines:
    _HOMES = {w[3]: w[1] for w in map(str.split, _lines) if w[:1] == ["from"]}
__all__ = list(_HOMES)


class _Package(ModuleType):
    """This package: a name is looked up in its module when it is first asked for."""

    def __getattr__(self, name: str) -> Any:
        if name in _HOMES:
            value = getattr(importlib.import_module(_HOMES[name]), name)
            setattr(self, name, value)
            return value
        module = f"{__name__}.{name}"
        try:
            if not name.startswith("_"):
                return importlib.import_module(module)
        except ModuleNotFoundError as error:
            if error.name != module:
                raise
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        # Importing the module `feelgood.simulate` must not hide the function of that name.
        if name not in _HOMES or not isinstance(value, ModuleType):
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted([*_HOMES, "__version__"])


sys.modules[__name__].__class__ = _Package
