"""The wheel of this checkout in an environment of its own, for the tests that play a new user."""

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check")


def run(*command: str | Path, cwd: Path) -> str:
    """Standard output of a command that must succeed; sees nothing of PYTHONPATH."""
    env = {k: v for k, v in os.environ.items() if k not in {"PYTHONPATH", "PYTHONHOME"}}
    env["COLUMNS"] = "100"
    done = subprocess.run(
        [str(c) for c in command], cwd=cwd, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def make_wheel(tmp: Path) -> Path:
    """The wheel of this checkout, in a folder `dist`."""
    run(*PIP, "wheel", "--no-deps", "--no-build-isolation", "-w", tmp / "dist", ROOT, cwd=tmp)
    (wheel,) = (tmp / "dist").glob("feelgood-*.whl")
    return wheel


def install(tmp: Path) -> Path:
    """Folder of a new environment that holds the wheel of this checkout."""
    wheel = make_wheel(tmp)
    env = tmp / "env"
    venv.create(env, with_pip=False, symlinks=os.name != "nt")
    python = env / "bin" / "python"
    run(*PIP, "--python", python, "install", "--no-deps", "--no-index", wheel, cwd=tmp)

    # The dependencies are those of the running environment, which saves downloading them again: a
    # .pth file appends its site-packages to the path. The .pth files in there, among them the one
    # of the editable feelgood, are not read: Python reads them only in its own site-packages. It
    # is written after the installation, or pip would find a feelgood already installed.
    paths = {sysconfig.get_path(name) for name in ("purelib", "platlib")}
    query = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = Path(run(python, "-c", query, cwd=tmp).strip())
    (site / "dependencies.pth").write_text("\n".join(sorted(paths)) + "\n")
    return env
