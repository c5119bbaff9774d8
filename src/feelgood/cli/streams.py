"""Standard output and error that no reader, disk or alphabet can turn into a crash."""

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from feelgood.core.errors import FeelgoodError

#: The longest error message; what was given may be longer than anybody reads.
MOST_SIGNS = 1_200


class SturdyStream:
    """A text stream that goes on after its reader has left.

    What cannot be encoded becomes `?`. Once the other end of a pipe is closed, the rest is
    dropped. Another failure, such as a full disk, is a `FeelgoodError`, or nothing where `silent`.
    """

    def __init__(self, stream: Any, silent: bool = False) -> None:
        self._stream, self._silent = stream, silent
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write as any text stream does."""
        with self._surviving():
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Flush as any text stream does."""
        with self._surviving():
            self._stream.flush()

    @contextmanager
    def _surviving(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self._send_the_rest_nowhere()
            if not (self._silent or isinstance(error, BrokenPipeError)):
                raise FeelgoodError(
                    f"cannot print the output ({error.strerror}): print it elsewhere; files that "
                    "were asked for are written."
                ) from None

    def _send_the_rest_nowhere(self) -> None:
        """Also what is buffered, which Python would try to write once more at its end."""
        with contextlib.suppress(OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)


@contextmanager
def results_at_stake() -> Iterator[None]:
    """Here Ctrl-C always raises `KeyboardInterrupt`, so that what is finished can be saved."""
    given = signal.getsignal(signal.SIGINT)
    own = threading.current_thread() is threading.main_thread() and callable(given)
    if own:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        if own:
            signal.signal(signal.SIGINT, given)


def run_with_sturdy_streams(app: Callable[[], object]) -> int:
    """Run the command line's application and return its exit code."""
    from feelgood.cli.app import errors

    given = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = SturdyStream(given[0]), SturdyStream(given[1], silent=True)
    try:
        try:
            code = _code_of(app)
            sys.stdout.flush()
        except (FeelgoodError, OSError) as error:
            errors.print(f"feelgood: {_sentence(error)}", style="red", markup=False)
            code = 2
        sys.stderr.flush()
        return code
    finally:
        sys.stdout, sys.stderr = given


def _sentence(error: Exception) -> str:
    """What was wrong, on one line, without signs that a terminal would obey."""
    text = str(error)
    if isinstance(error, OSError):
        # Of a path that was given: too long, not allowed, a loop of links.
        where = "a file" if error.filename is None else f"'{error.filename}'"
        text = f"cannot use {where} ({error.strerror or error}): check the path."
    line = "".join(sign if sign.isprintable() else " " for sign in text)
    half = MOST_SIGNS // 2
    return line if len(line) <= MOST_SIGNS else f"{line[:half]} … {line[-half:]}"


def _code_of(app: Callable[[], object]) -> int:
    try:
        app()
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    return 0
