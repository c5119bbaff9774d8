"""`feelgood report` and `feelgood plot`."""

import resource
import subprocess
import sys
from pathlib import Path

import pytest
from made_up import as_published, data_of, few, made_up

from feelgood import FeelgoodError, cli
from feelgood.report import page
from feelgood.report.charts.health import sampler_health
from feelgood.studies.planning import Cell, plan_cells
from feelgood.studies.store import Store


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results") / "study"
    written = Store(folder)
    for agent in ("linucb", "lints"):
        (cell,) = plan_cells("linear-20", agent, preset="paper", rounds=200, seeds=5)
        written.put(cell, as_published(agent, 200))
    return folder


def command(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    monkeypatch.setattr(sys, "argv", ["feelgood", *map(str, arguments)])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert isinstance(stop.value.code, int)
    return stop.value.code


def test_report_writes_a_page_and_opens_it(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    file = tmp_path / "page.html"
    assert command(monkeypatch, "report", store, "--out", file, "--open") == 0
    assert opened == [file.as_uri()]
    data = data_of(file.read_text(encoding="utf-8"))
    assert data["labels"]
    assert len(data["published"][0]) > 0
    assert command(monkeypatch, "report", store, "--out", file) == 2
    assert command(monkeypatch, "report", store, "--out", file, "--force") == 0
    assert command(monkeypatch, "report", store) == 0
    assert (store / "report.html").exists()
    assert len(Store(store).results()) == 2


@pytest.mark.parametrize("chart", ["curves", "final", "published"])
def test_plot_writes_a_picture(
    chart: str, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "figure.svg"
    assert command(monkeypatch, "plot", store, "--chart", chart, "--out", file) == 0
    drawn = file.read_text()
    assert "linucb" in drawn
    assert "lints" in drawn
    arguments = ("--agents", "lints", "--out", file, "--force")
    assert command(monkeypatch, "plot", store, "--chart", chart, *arguments) == 0
    assert "linucb" not in file.read_text()


BAD = {
    ("report", "{tmp}/nothing"): "is not a folder",
    ("report", "{tmp}"): "is not a results store",
    ("report", "{empty}"): "has no finished results",
    ("report", "{store}", "--out", "{tmp}"): "is a folder",
    ("report", "{store}", "--out", "/dev/null/page.html"): "cannot write",
    ("plot", "{store}", "--out", "{tmp}/x.gif"): "no known suffix",
    ("plot", "{store}", "--out", "{tmp}/x"): "no known suffix",
    ("plot", "{store}", "--chart", "curvs", "--out", "{tmp}/x.png"): "did you mean 'curves'",
    ("plot", "{store}", "--band", "stt", "--out", "{tmp}/x.png"): "did you mean 'std'",
    ("plot", "{store}", "--agents", "linucv", "--out", "{tmp}/x.png"): "did you mean 'linucb'",
    ("plot", "{store}", "--testbed", "linear-21", "--out", "{tmp}/x.png"): "'linear-20'",
    ("plot", "{store}", "--chart", "sweep", "--out", "{tmp}/x.png"): "no setting is swept",
    ("plot", "{store}", "--chart", "health", "--out", "{tmp}/x.png"): "has a sampler",
    ("plot", "{store}", "--chart", "compute", "--out", "{tmp}/x.png"): "no gradients are recorded",
}


@pytest.mark.parametrize("arguments", BAD, ids=lambda a: " ".join(a[:1] + a[2:]))
def test_bad_input_is_one_sentence(
    arguments: tuple[str, ...],
    store: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    Store(tmp_path / "empty")
    places = {"store": store, "tmp": tmp_path, "empty": tmp_path / "empty"}
    assert command(monkeypatch, *(a.format(**places) for a in arguments)) == 2
    said = capsys.readouterr().err
    assert said.startswith("feelgood: ")
    assert BAD[arguments] in said
    assert said.strip().count("\n") == 0
    assert not (tmp_path / "x.png").exists()


def test_a_measure_that_nobody_recorded_is_refused() -> None:
    with pytest.raises(FeelgoodError, match="did you mean 'acceptance'"):
        sampler_health(few(), measure="acceptence")


def test_the_pages_files_are_in_the_package() -> None:
    folder = Path(page.__file__).parent / "assets"
    assert {"page.html", "page.css", *page.SCRIPTS} == {p.name for p in folder.iterdir()}


@pytest.mark.slow
def test_a_report_of_2000_series_takes_less_than_20_seconds(tmp_path: Path) -> None:
    """From the store to the file: 20 agents × 25 weights × 4 testbeds.

    The command's processor time is measured, since the machine may be busy. It runs in a process
    of its own, since the tests' own process checks all shapes, which is slow.
    """
    store = Store(tmp_path / "store")
    agents = [f"agent{i}" for i in range(20)]
    for testbed in ("linear-20", "linear-40", "logistic-20", "wheel-0.5"):
        for i, agent in enumerate(agents):
            for k in range(25):
                settings = {"lam": 0.1 * k, "beta": 1.0}
                level = 40.0 + 9 * i + k
                result = made_up(agent, testbed, level=level, rounds=10_000, settings=settings)
                cell = Cell(testbed, {"arms": 5}, agent, settings, 10_000, result.seeds)
                store.put(cell, result)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    arguments = ["report", str(tmp_path / "store")]
    subprocess.run([sys.executable, "-m", "feelgood", *arguments], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    taken = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    text = (tmp_path / "store" / "report.html").read_text(encoding="utf-8")
    assert sum(map(len, data_of(text)["results"])) == 2000
    assert len(text) < 15e6
    assert taken < 20.0, f"{taken:.1f} s"
