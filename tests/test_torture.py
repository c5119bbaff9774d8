"""One kill is quick, the short form is slow; `make torture` runs the long one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from torture.ray_parts import PARTS, victims_among

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        # Damage, disks and inputs have quick tests of their own in tests/studies and tests/api.
        pytest.param(["calls", "--only", "0"], id="one kill before a call"),
        pytest.param([], id="the short form", marks=pytest.mark.slow),
    ],
)
def test_everything_is_survived(options: list[str], tmp_path: Path) -> None:
    kinds = sum(not option.startswith("-") and option != "0" for option in options) or 6
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    done = subprocess.run(
        [sys.executable, "-m", "torture", *options, "--short", "--scratch", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=550,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("0 went wrong") == kinds


def test_each_part_of_ray_is_told_from_the_others() -> None:
    """An agent that is killed for a worker takes the whole cluster with it."""
    family = {
        1: "python -m feelgood study run s.toml --engine ray",
        2: "/ray/core/src/ray/gcs/gcs_server --log_dir=/tmp",
        3: "/ray/core/src/ray/raylet/raylet --raylet_socket_name=/tmp/raylet",
        4: "ray::DashboardAgent     ",
        5: "ray::RuntimeEnvAgent    ",
        6: "ray::IDLE   ",
        7: "ray::_play  ",
    }
    found = {part: victims_among(family, part, 1) for part in PARTS}
    assert found == {"driver": [1], "worker": [6, 7], "agent": [4, 5], "raylet": [3], "GCS": [2]}
