"""One attack of each kind is quick, the short form is slow; `make torture` runs the long one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(["--only", "0"], id="the first of each kind"),
        pytest.param([], id="the short form", marks=pytest.mark.slow),
    ],
)
def test_everything_is_survived(options: list[str], tmp_path: Path) -> None:
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    done = subprocess.run(
        [sys.executable, "-m", "torture", "--short", *options, "--scratch", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=550,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("0 went wrong") == 6
