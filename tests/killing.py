"""Processes of `live/killed.py` that are killed while they write."""

import signal
import subprocess
import sys
import time
from pathlib import Path

KILLED = Path(__file__).parent / "live" / "killed.py"


def killed(seconds: float, kind: str, *places: Path, lines: int = 0) -> list[list[str]]:
    """What a process said before it was killed, so long after it was ready and said some lines."""
    command = [sys.executable, str(KILLED), kind, *map(str, places)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        said = [process.stdout.readline() for _ in range(lines)]
        time.sleep(seconds)
        process.send_signal(signal.SIGKILL)
        said += process.stdout.read().split("\n")[:-1]
    return [line.split() for line in said]
