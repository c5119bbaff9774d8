"""Without the extras the package runs, compares and saves; what needs one says which."""

import subprocess
import sys
from pathlib import Path

import pytest
from clean_install import ROOT, run

EXTRAS = ("altair", "vl_convert", "blackjax", "ray", "arviz", "sklearn")
WITHOUT = f"import sys; sys.modules.update(dict.fromkeys({EXTRAS}))\n"


def python(source: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    """Python in which the extras cannot be imported."""
    line = [sys.executable, "-c", WITHOUT + source]
    return subprocess.run(line, cwd=folder, capture_output=True, text=True, check=False)


RUNS = """
import feelgood

result = feelgood.run("linear-20", ["lints", "uniform"], rounds=50, seeds=3)
print(result.compare())
result.save("kept")
print(len(feelgood.load("kept")))
for attempt in (
    result.plot,
    lambda: feelgood.run("linear-20", "blackjax:nuts", rounds=20, seeds=1),
):
    try:
        attempt()
    except feelgood.FeelgoodError as error:
        print("said:", error)
"""


@pytest.mark.slow
def test_the_core_runs_without_extras(tmp_path: Path) -> None:
    done = python(RUNS, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "higher regret" in done.stdout
    said = [line for line in done.stdout.splitlines() if line.startswith("said: ")]
    assert len(said) == 2
    assert "pip install 'feelgood[charts]'" in said[0]
    assert "pip install 'feelgood[blackjax]'" in said[1]


@pytest.mark.slow
def test_a_command_that_needs_an_extra_says_so(tmp_path: Path) -> None:
    source = "from feelgood import cli; sys.argv = ['feelgood', *{}]; cli.main()"
    words = ["run", "linear-20", "uniform", "--rounds", "20", "--seeds", "2", "--out", "kept"]
    done = python(source.format(words), tmp_path)
    assert done.returncode == 0, done.stderr
    done = python(source.format(["plot", "kept", "--out", "a.svg"]), tmp_path)
    assert done.returncode == 2
    assert done.stderr.strip().startswith("feelgood: charts and pages need the package altair")
    done = python(source.format(["doctor"]), tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_the_source_distribution_can_be_installed(tmp_path: Path) -> None:
    """The archive of the sources makes the same wheel."""
    build = (sys.executable, "-m", "build", "--no-isolation")
    run(*build, "--sdist", "--outdir", tmp_path / "dist", ROOT, cwd=tmp_path)
    (archive,) = (tmp_path / "dist").glob("feelgood-*.tar.gz")
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check")
    options = ("install", "--no-deps", "--no-index", "--no-build-isolation", "--target", "there")
    run(*pip, *options, archive, cwd=tmp_path)
    source = "import feelgood; print(feelgood.__file__, feelgood.__version__)"
    line = [sys.executable, "-c", f"import sys; sys.path.insert(0, 'there'); {source}"]
    printed = run(*line, cwd=tmp_path)
    assert str(tmp_path) in printed
    assert (tmp_path / "there" / "feelgood" / "api" / "baselines.parquet").exists()
