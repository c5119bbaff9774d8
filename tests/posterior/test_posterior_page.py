"""Posteriors in the page and in figures: error along runs, correlations, the paper's figure."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_up import made_up, measured, small_analysis

from feelgood import FeelgoodError, cli
from feelgood.posterior import Analysis
from feelgood.posterior.saved import FILES, read_analysis, writers
from feelgood.report.charts.draws import posterior_figure
from feelgood.report.charts.posterior import posterior_along
from feelgood.report.page import build_page, page_data
from feelgood.report.posterior_errors import correlation, errors_of
from feelgood.report.rendering import to_spec
from feelgood.report.series import name_series
from feelgood.studies.planning import plan_cells
from feelgood.studies.store import Store

# ---- correlation ----------------------------------------------------------------------------


def test_errors_are_what_is_left_beyond_exact_draws() -> None:
    series = name_series(measured(3))
    assert errors_of(series[2], "trace") == pytest.approx(np.full(5, 0.2))
    assert errors_of(series[2], "choice") == pytest.approx(np.full(5, 0.2))
    assert errors_of(series[2], "bias") == pytest.approx(np.zeros(5))
    six = name_series(measured(6))
    assert correlation(six, "trace").spearman == 1.0
    assert correlation(six, "bias").spearman_text == "undefined"


# ---- the page -------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_page_has_the_section_where_something_was_measured() -> None:
    data = page_data([*measured(6), made_up("linucb")])
    charts = [c for c in data["charts"] if c["section"] == "posterior"]
    assert [len(c["variants"]) for c in charts] == [7, 7]
    (table,) = data["tables"]
    assert "over 6 agents" in table["title"]
    variance = next(row for row in table["rows"] if row[0] == "Variance")
    assert variance[1].startswith("+1.00")
    few = page_data(measured(3))
    assert not few["tables"]
    captions = [c["caption"] for c in few["charts"] if c["section"] == "posterior"]
    assert "3 agents are too few" in captions[1]
    plain = page_data([made_up("lints")])
    assert not [c for c in plain["charts"] if c["section"] in ("posterior", "draws")]


def test_charts_hold_the_monte_carlo_error_and_what_exact_draws_show() -> None:
    spec = to_spec(posterior_along(measured(2), "trace"))
    rows = [row for table in spec["datasets"].values() for row in table]
    last = next(r for r in rows if r["series"] == "lmcts" and r["round"] == 400)
    assert last["mean"] == 1.1 and last["expected"] == 1.0
    assert last["error"] == pytest.approx(0.02 / np.sqrt(5), rel=0.01)
    with pytest.raises(FeelgoodError, match="unknown measure 'tracee'"):
        posterior_along(measured(2), "tracee")
    with pytest.raises(FeelgoodError, match="no posterior was measured here"):
        posterior_along([made_up("lints")])


# ---- the paper's figure ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def analysis() -> Analysis:
    return small_analysis()


@pytest.fixture(scope="module")
def folder(analysis: Analysis, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("analysis")
    for name, write in writers(analysis).items():
        write(place / name)
    return place


def test_a_saved_analysis_is_read_back(analysis: Analysis, folder: Path) -> None:
    again = read_analysis(folder)
    assert again.to_json()["agents"] == analysis.to_json()["agents"]
    for a, b in zip(again.agents, analysis.agents, strict=True):
        assert np.array_equal(a.draws, b.draws)
        assert list(a.laws) == list(b.laws)
        for name, law in a.laws.items():
            assert np.array_equal(law.covariance, b.laws[name].covariance)
        mine, theirs = a.comparisons["posterior"], b.comparisons["posterior"]
        assert mine.row("trace", 1)[:5] == theirs.row("trace", 1)[:5]
        assert mine.verdict.sentence == theirs.verdict.sentence
    # The figure is the same, point for point.
    assert to_spec(posterior_figure(again.agents)) == to_spec(posterior_figure(analysis.agents))


def command(monkeypatch: pytest.MonkeyPatch, *args: str) -> int:
    monkeypatch.setattr(sys, "argv", ["feelgood", *args])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    return int(stop.value.code or 0)


def test_the_figure_comes_from_saved_draws(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "figure.svg"
    arguments = ("plot", str(folder), "--chart", "draws", "--out", str(out))
    assert command(monkeypatch, *arguments, "--agents", "lmcts") == 0
    drawn = out.read_text()
    assert "lmcts" in drawn and "lints" not in drawn and "arm 4" in drawn
    assert "exact posterior" in drawn and "exact own target" in drawn
    assert command(monkeypatch, *arguments, "--force", "--agents", "hmcts") == 2
    assert "has no agent 'hmcts'" in capsys.readouterr().err
    assert command(monkeypatch, "plot", str(tmp_path), "--chart", "draws", "--out", "a.png") == 2
    assert "holds no posterior analysis" in capsys.readouterr().err.replace("\n", " ")


@pytest.mark.slow  # quick: test_imports.py
@pytest.mark.parametrize("kind", ["plot", "report"])
def test_saved_draws_are_read_in_a_process_of_their_own(
    kind: str, folder: Path, tmp_path: Path
) -> None:
    """In a test's process pyarrow is loaded as a whole; a command loads what it asks for."""
    out = tmp_path / ("figure.svg" if kind == "plot" else "page.html")
    arguments = {
        "plot": ["plot", folder, "--chart", "draws"],
        "report": ["report", tmp_path / "store", "--posterior", folder],
    }[kind]
    if kind == "report":
        (cell,) = plan_cells("linear-20", "lints", rounds=50, seeds=2)
        Store(tmp_path / "store").put(cell, made_up("lints", rounds=50, seeds=2))
    done = subprocess.run(
        [sys.executable, "-m", "feelgood", *map(str, arguments), "--out", str(out)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "lmcts" in out.read_text()


def test_a_damaged_analysis_is_one_sentence(folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    summary = json.loads((copy / FILES[0]).read_text())
    summary["agents"][0]["chains"] = 7
    (copy / FILES[0]).write_text(json.dumps(summary))
    with pytest.raises(FeelgoodError, match="is damaged"):
        read_analysis(copy)


def test_the_page_of_an_analysis_alone_and_beside_results(
    folder: Path, analysis: Analysis, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    assert command(monkeypatch, "report", str(folder), "--out", str(page)) == 0
    text = page.read_text()
    assert "posteriors on linear-20, 60 rounds" in text
    data: dict[str, Any] = page_data([made_up("lints")], (), [analysis])
    assert [p["name"] for p in data["problems"]] == [
        "linear-20",
        "posteriors on linear-20, 60 rounds, one run for all",
    ]
    (chart,) = (c for c in data["charts"] if c["section"] == "draws")
    assert chart["problem"] == 1 and chart["switched"]
    (table,) = data["tables"]
    assert {row[2] for row in table["rows"]} == {"posterior", "target"}
    assert data["results"][1] == [] and len(data["results"][0]) == 1
    with pytest.raises(FeelgoodError, match="there are no results to report"):
        build_page([])
