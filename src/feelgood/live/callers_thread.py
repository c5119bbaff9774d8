"""In which thread programs run."""

from typing import Any

import jax

_ours = False


def run_in_callers_thread() -> None:
    """Let programs run in the thread that calls them: otherwise each call waits for another one.

    JAX reads this once, before its first program. Where that may be too late, players wait.
    """
    global _ours  # noqa: PLW0603
    if not _ours:
        jax.config.update("jax_cpu_enable_async_dispatch", False)
        bridge: Any = getattr(jax._src, "xla_bridge", None)  # no public name says it
        started = getattr(bridge, "backends_are_initialized", lambda: True)
        _ours = not started() and jax.default_backend() == "cpu"


def runs_in_callers_thread() -> bool:
    """Whether that was in time: what a program returns is then there at once."""
    return _ours
