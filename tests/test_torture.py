"""The short form of the hostile test; `make torture` runs the long one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where all kinds of attack find the undisturbed studies."""
    return tmp_path_factory.mktemp("torture")


@pytest.mark.parametrize("kind", ["kills", "calls", "disks", "damage", "inputs"])
def test_everything_is_survived(kind: str, scratch: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "torture", kind, "--short", "--scratch", str(scratch)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *_paths()])},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 went wrong" in done.stdout


def _paths() -> list[str]:
    before = os.environ.get("PYTHONPATH")
    return [before] if before else []
