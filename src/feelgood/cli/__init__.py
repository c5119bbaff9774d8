"""The command line: thin. It parses, calls, prints; everything else lives elsewhere.

One file per command or group of commands, listed in `commands`. Importing them is quick: what
needs JAX is imported inside the functions.
"""

import os
import signal
import sys
import threading
from types import FrameType


def main() -> None:
    """Entry point: bad input is one sentence and exit code 2, never a traceback."""
    listening = (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )
    if listening:
        signal.signal(signal.SIGINT, _on_ctrl_c)
    try:
        from feelgood.cli.commands import app
        from feelgood.cli.streams import run_with_sturdy_streams

        code = run_with_sturdy_streams(app)
    except KeyboardInterrupt:
        code = 130
    finally:
        if listening:
            signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.exit(code)


def _on_ctrl_c(number: int, frame: FrameType | None) -> None:
    """End at once during an import: compiled modules that are half imported crash or hang."""
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            os._exit(128 + number)
        frame = frame.f_back
    raise KeyboardInterrupt
