"""Without the extras the package runs, compares and saves; what needs one says which."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from clean_install import ROOT, run

EXTRAS = ("pyarrow", "altair", "vl_convert", "blackjax", "ray", "arviz", "sklearn")
WITHOUT = f"import sys; sys.modules.update(dict.fromkeys({EXTRAS}))\n"


def python(source: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    """Python in which the extras cannot be imported."""
    line = [sys.executable, "-c", WITHOUT + source]
    return subprocess.run(line, cwd=folder, capture_output=True, text=True, check=False)


RUNS = """
import feelgood

result = feelgood.run("linear-20", ["lints", "uniform"], rounds=50, seeds=3)
print(result.compare())
bandit = feelgood.Bandit("lints", arms=["tea", "rum"], features=2, seed=0, journal="journal")
decision = bandit.act([1.0, 0.5])
bandit.update(decision.id, 1.0)
bandit.save("bandit.fg")
print(feelgood.Bandit.load("bandit.fg").version, "reward")
for attempt in (
    lambda: result.save("kept"),
    result.to_pandas,
    lambda: feelgood.tune,
    lambda: feelgood.evaluate,
    lambda: feelgood.Bandit("lints", arms=["tea", "rum"], features=2, log="log.arrow"),
    result.plot,
    lambda: feelgood.run("linear-20", "blackjax:nuts", rounds=20, seeds=1),
):
    try:
        attempt()
    except feelgood.FeelgoodError as error:
        print("said:", error)
"""


@pytest.mark.slow
def test_the_core_runs_and_decides_without_extras(tmp_path: Path) -> None:
    done = python(RUNS, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "higher regret" in done.stdout
    assert "1 reward" in done.stdout
    said = [line for line in done.stdout.splitlines() if line.startswith("said: ")]
    wanted = ["files"] * 5 + ["charts", "blackjax"]
    assert [re.findall(r"pip install 'feelgood\[(\w+)\]'", line) for line in said] == [
        [extra] for extra in wanted
    ]


COMMAND = "from feelgood import cli; sys.argv = ['feelgood', *{}]; cli.main()"
RUN = ["run", "linear-20", "uniform", "--rounds", "20", "--seeds", "2"]


@pytest.mark.slow
@pytest.mark.parametrize("words", [RUN, ["list"], ["list", "lints"], ["doctor"]])
def test_a_command_without_files_needs_no_extra(words: list[str], tmp_path: Path) -> None:
    done = python(COMMAND.format(words), tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("words", "extra"),
    [
        ([*RUN[:3], "--rounds", "1m", "--out", "kept"], "files"),  # before it runs, not after
        pytest.param(
            [*RUN[:3], "--rounds", "1m", "--page", "page.html"], "charts", marks=pytest.mark.slow
        ),
        pytest.param(["study", "run", "mine.toml"], "files", marks=pytest.mark.slow),
        pytest.param(["evaluate", "log.csv", "lints"], "files", marks=pytest.mark.slow),
        pytest.param(
            ["challenge", "lints", "--testbed", "wheel-0.99"], "files", marks=pytest.mark.slow
        ),
        pytest.param(["plot", "kept", "--out", "a.svg"], "charts", marks=pytest.mark.slow),
    ],
)
def test_a_command_that_needs_an_extra_says_so(
    words: list[str], extra: str, tmp_path: Path
) -> None:
    done = python(COMMAND.format(words), tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("feelgood: ")
    assert done.stderr.endswith(f"pip install 'feelgood[{extra}]'.\n")
    assert list(tmp_path.iterdir()) == []


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
