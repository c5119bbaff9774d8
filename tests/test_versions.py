"""The wheel, with the oldest and the newest packages that it asks for, on every Python here.

An environment takes about 0.9 GB and is removed before the next one is made.
"""

import json
import re
import shutil
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from clean_install import PIP, ROOT, make_wheel, run
from fences import snippets

pytestmark = pytest.mark.slow

PYTHONS = ("3.11", "3.12", "3.13", "3.14")
SMOKE = Path(__file__).with_name("version_smoke.py")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_the_package_names_no_python_that_is_not_tested() -> None:
    shape = re.compile(r"Programming Language :: Python :: (3\.\d+)$")
    named = {m[1] for c in PROJECT["classifiers"] if (m := shape.match(c))}
    assert named <= set(PYTHONS)
    assert PROJECT["requires-python"] == f">={PYTHONS[0]}"


def oldest(python: str) -> list[str]:
    """The lower bounds; NumPy and others have none of that age for a newer Python, JAX has."""
    wanted = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["files"]]
    pins = [requirement.replace(">=", "==") for requirement in wanted]
    return pins if python == PYTHONS[0] else [pin for pin in pins if pin.startswith("jax==")]


def interpreter(version: str) -> str:
    """A Python of this version on the path or from pyenv; skips the test where there is none."""
    pyenv = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
    found = shutil.which(f"python{version}")
    places = [*map(str, pyenv), *([found] if found else [])]
    if not places:
        pytest.skip(f"there is no Python {version} on this machine")
    return places[0]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_wheel(tmp_path_factory.mktemp("versions"))


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the running environment says."""
    folder = tmp_path_factory.mktemp("here")
    return dict(json.loads(run(sys.executable, SMOKE, cwd=folder).splitlines()[-1]))


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    shutil.rmtree(tmp_path / "env", ignore_errors=True)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("age", ["oldest", "newest"])
@pytest.mark.parametrize("version", PYTHONS)
def test_the_wheel_works(
    version: str, age: str, wheel: Path, expected: dict[str, Any], folder: Path
) -> None:
    python = folder / "env" / "bin" / "python"
    run(interpreter(version), "-m", "venv", "--without-pip", folder / "env", cwd=folder)
    constraints = folder / "constraints.txt"
    constraints.write_text("\n".join(oldest(version) if age == "oldest" else []))
    options = ("install", "--quiet", "--no-cache-dir", "-c", constraints, f"{wheel}[charts]")
    run(*PIP, "--python", python, *options, cwd=folder)
    found = json.loads(run(python, SMOKE, cwd=folder).splitlines()[-1])
    assert found["arms"] == expected["arms"]
    # Another version may round otherwise: what `feelgood challenge check` allows, too.
    assert found["study"] == pytest.approx(expected["study"], rel=0.02)
    assert found["regrets"] == pytest.approx(expected["regrets"], rel=0.02)
    snippet = next(s for s in snippets(ROOT / "README.md") if s.runs and s.language == "python")
    run(python, "-c", snippet.text, cwd=folder)
    assert (folder / "regret.html").stat().st_size > 1000


#: Bytes below which the core stays without JAX: half of what version 0.1 took.
LIGHT = 235_000_000


@pytest.mark.timeout(1800)
def test_the_core_is_light_and_runs(wheel: Path, folder: Path) -> None:
    """The wheel without extras, with what it needs and nothing else."""
    env = folder / "env"
    options = ("install", "--quiet", "--no-cache-dir", "--no-compile", "--target", env, wheel)
    run(*PIP, *options, cwd=folder)
    files = [f for f in env.rglob("*") if f.is_file() and not f.is_symlink()]
    jax = [f for f in files if f.relative_to(env).parts[0] in ("jax", "jaxlib")]
    assert sum(f.stat().st_size for f in files) - sum(f.stat().st_size for f in jax) < LIGHT
    start = f"import sys; sys.path.insert(0, {str(env)!r}); "
    words = ["feelgood", "run", "linear-20", "linucb", "uniform", "--rounds", "50", "--seeds", "3"]
    command = f"{start}sys.argv = {words}; from feelgood import cli; cli.main()"
    assert "linucb is best" in run(sys.executable, "-I", "-S", "-c", command, cwd=folder)
