"""Compile ahead of time, once per shape, and say how long it took."""

import functools
import gc
import os
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import jax

from feelgood.core.cache_folder import cache_folder

P = ParamSpec("P")
T = TypeVar("T")

_PROGRAMS_KEPT = 128

#: Options of XLA's, as pairs of a name and a value.
Options = tuple[tuple[str, str | bool], ...]
#: What the CPU compiler is told of a program: that it runs long (`LONG`), for a short time
#: (`BRIEFLY`), or once (`ONCE`). XLA's fusion emitters take a quarter of the compile time, and our
#: programs run no faster with them.
LONG: Options = (("xla_cpu_use_fusion_emitters", False),)
#: A small program is compiled faster in one part than cut up for several threads.
_WHOLE: Options = (("xla_cpu_parallel_codegen_split_count", "1"), *LONG)
BRIEFLY: Options = (("xla_backend_optimization_level", "2"), *_WHOLE)
ONCE: Options = (("xla_backend_optimization_level", "0"), *_WHOLE)

_lock = threading.Lock()
_programs: OrderedDict[Any, Any] = OrderedDict()
_spent = 0.0


def seconds_spent() -> float:
    """What compiling has taken in this process so far."""
    return _spent


def in_own_precision(function: Callable[P, T]) -> Callable[P, T]:
    """The same function, in float32 and 32-bit integers whatever `jax_enable_x64` says.

    Random numbers and results would otherwise change. JAX keeps this setting per thread, so the
    function that a thread starts with needs the decorator itself.
    """

    @functools.wraps(function)
    def in_32_bits(*args: P.args, **kwargs: P.kwargs) -> T:
        with jax.enable_x64(False):
            return function(*args, **kwargs)

    return in_32_bits


def keep_compiled_programs() -> None:
    """Use JAX's persistent compilation cache, unless the user has configured one already."""
    if jax.config.values["jax_compilation_cache_dir"] is None:
        folder = cache_folder() / "programs"
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            trusted = _is_ours_alone(folder)
        except OSError:
            return  # a read-only home costs compile time, nothing else
        if not trusted:
            print(
                f"feelgood: compiled programs are not kept: {folder} belongs to another user; set "
                "FEELGOOD_CACHE to a folder of your own.",
                file=sys.stderr,
            )
            return
        jax.config.update("jax_compilation_cache_dir", str(folder))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


def _is_ours_alone(folder: Path) -> bool:
    """Whether nobody else can put programs there for us to run; from now on they cannot."""
    if not hasattr(os, "getuid"):
        return True
    found = folder.stat()
    if found.st_uid != os.getuid():
        return False
    if found.st_mode & 0o022:
        folder.chmod(found.st_mode & 0o755)
    return True


def _shape_of(leaf: Any) -> Any:
    return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, weak_type=getattr(leaf, "weak_type", False))


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Without Python's garbage collector, which would go through all modules while we trace."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def compiled(
    function: Callable[..., Any],
    *args: Any,
    donate: tuple[int, ...] = (),
    effort: Options = LONG,
) -> tuple[Any, float]:
    """`function` compiled for the shapes of `args`, and the seconds that took (0 if known).

    `effort` is `ONCE`, `BRIEFLY` or, by default, `LONG`: all that makes a program faster.
    """
    global _spent  # noqa: PLW0603
    shapes = jax.tree.map(_shape_of, args)
    leaves, structure = jax.tree.flatten(shapes)
    key = (function, structure, tuple((x.shape, x.dtype, x.weak_type) for x in leaves))
    with _lock:
        if key in _programs:
            _programs.move_to_end(key)
            return _programs[key], 0.0
        start = time.perf_counter()
        with _collector_paused():
            lowered = jax.jit(function, donate_argnums=donate).lower(*shapes)
            program = _compile(lowered, effort if jax.default_backend() == "cpu" else ())
        seconds = time.perf_counter() - start
        _spent += seconds
        _programs[key] = program
        while len(_programs) > _PROGRAMS_KEPT:
            _programs.popitem(last=False)
    return program, seconds


def _compile(lowered: jax.stages.Lowered, options: Options) -> jax.stages.Compiled:
    """With those of the options that this version of the compiler knows."""
    try:
        return lowered.compile(compiler_options=dict(options))
    except jax.errors.JaxRuntimeError as error:
        known = tuple(option for option in options if f"'{option[0]}'" not in str(error))
        if known == options:
            raise
        return _compile(lowered, known)
