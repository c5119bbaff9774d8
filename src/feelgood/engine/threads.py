"""Groups of chains, each played by one of several threads."""

import threading
from collections.abc import Callable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import TypeVar

from feelgood.engine.compiling import in_own_precision

T = TypeVar("T")


class Interrupted(Exception):
    """A stop was asked for in the middle of a run."""


def in_threads(
    job: Callable[[int, Callable[[int], None]], T],
    count: int,
    workers: int,
    progress: Callable[[int], None] | None = None,
) -> list[T]:
    """`job(i, advance)` for i = 0 … count − 1, in order of i. The first error stops the others.

    A job calls `advance(n)` after every n chain-rounds, which reports them and may raise.
    """
    stopping = threading.Event()
    lock = threading.Lock()

    def advance(chain_rounds: int) -> None:
        if stopping.is_set():
            raise Interrupted
        if progress is not None:
            with lock:
                progress(chain_rounds)

    one = in_own_precision(job)
    with ThreadPoolExecutor(max_workers=workers) as pool:
        futures = [pool.submit(one, i, advance) for i in range(count)]
        try:
            wait(futures, return_when=FIRST_EXCEPTION)
            for failed in (f for f in futures if f.done() and f.exception() is not None):
                failed.result()
            return [future.result() for future in futures]
        except BaseException:
            stopping.set()
            for future in futures:
                future.cancel()
            raise
