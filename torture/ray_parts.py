"""Ray's parts killed in the middle of a study: driver, worker, agent, raylet, GCS."""

import contextlib
import functools
import importlib.util
import os
import random
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from torture.arena import (
    LONG,
    Attack,
    Reference,
    Skipped,
    check,
    command,
    environment,
    must_be_whole,
    new_study,
    started,
)

#: Patterns of the parts' command lines; the driver is the command itself. Agents and workers have
#: similar names. By Ray's design a raylet, and with it the study, ends when one of its agents ends.
PARTS = {
    "driver": r"",
    "worker": r"^ray::(?!\w*Agent\b)",
    "agent": r"^ray::\w*Agent\b",
    "raylet": r"raylet/raylet",
    "GCS": r"gcs_server",
}
WORDS = ("study", "run", "s.toml", "--workers", "2", "--checkpoint-every", "0")
#: Ray gives up on a part that is gone after a minute.
PATIENCE = 240.0


def attacks(reference: Reference, short: bool) -> Sequence[Attack]:
    """Each part some times; none in the short form: starting Ray takes long."""
    if short:
        return []
    if importlib.util.find_spec("ray") is None:
        return [Attack("ray", part, _absent) for part in PARTS]
    long = reference.long
    return [
        Attack("ray", f"{part} {i}", functools.partial(_kill_part, long, part))
        for i in range(3)
        for part in PARTS
    ]


def _absent(folder: Path, luck: random.Random) -> int:
    raise Skipped("Ray is not installed")


def _family(parent: int) -> dict[int, str]:
    """All processes below this one, with their command lines."""
    parents, lines = {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, IndexError):
                stat = (entry / "stat").read_text()
                parents[int(entry.name)] = int(stat.rpartition(")")[2].split()[1])
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ")
                lines[int(entry.name)] = line.decode(errors="replace")
    found = {parent}
    while True:
        more = {pid for pid, above in parents.items() if above in found} - found
        if not more:
            return {pid: lines.get(pid, "") for pid in found}
        found |= more


def victims_among(family: dict[int, str], part: str, driver: int) -> list[int]:
    """The processes that are this part."""
    if part == "driver":
        return [driver]
    return [pid for pid, line in family.items() if re.search(PARTS[part], line)]


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _refused_to_start(code: int, said: str) -> None:
    """Ray may not start on a busy machine: that is one sentence, and no attack."""
    civil = code == 2 and "feelgood: Ray could not be started" in said
    check(civil and "Traceback" not in said, "ended before it began", code, said[-500:])
    raise Skipped("Ray did not start here")


def _kill_part(reference: Path, part: str, folder: Path, luck: random.Random) -> int:
    """The study ends, in whatever way, and a later one finishes it, bit for bit."""
    if not Path("/proc/self/stat").exists():
        raise Skipped("the processes of Ray are found in /proc")
    new_study(folder, LONG)
    temporary = tempfile.mkdtemp(prefix="rt")  # short: the names of sockets must be
    log = folder / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command(*WORDS, "--engine", "ray"),
            cwd=folder,
            stdout=output,
            stderr=output,
            env=environment(env={"RAY_TMPDIR": temporary}),
        )
    family: dict[int, str] = {}
    try:
        until = time.monotonic() + PATIENCE
        while not list((folder / "store" / "work").glob("*/driver-*")):
            if process.poll() is not None:
                _refused_to_start(process.returncode, log.read_text(errors="replace"))
            check(time.monotonic() < until, "did not begin")
            time.sleep(0.05)
        time.sleep(luck.uniform(0.0, 3.0))
        family = _family(process.pid)
        victims = victims_among(family, part, process.pid)
        struck = bool(victims) and process.poll() is None
        if struck:
            _kill(luck.choice(victims))
        try:
            code = process.wait(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            check(False, f"it hangs after its {part} was killed", log.read_text()[-500:])
        if part == "worker":
            said = log.read_text(errors="replace")[-500:]
            check(code == 0, "a study whose worker was killed ended with", code, said)
    finally:
        for pid in {**family, **_family(process.pid)}:
            _kill(pid)
        process.wait()
        shutil.rmtree(temporary, ignore_errors=True)
    started(*WORDS, cwd=folder).must_succeed()
    must_be_whole(folder / "store", reference)
    return int(struck)
