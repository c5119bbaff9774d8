"""The showdown: small files that lose nothing that matters."""

import dataclasses
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from grids import slow_but
from made_results import result
from typer.testing import CliRunner

from feelgood.core.errors import FeelgoodError
from feelgood.core.policy import AGENTS
from feelgood.engine.results import AgentResult, PosteriorAlong, run_key
from feelgood.paper.published_numbers import all_published
from feelgood.report.chain_costs import chain_cost
from feelgood.studies import Store, plan_cells, read_study
from showdown import keeping, later_settings
from showdown.__main__ import app
from showdown.collecting import collect
from showdown.filling import Wanted, listed, missing_study
from showdown.keeping import Kept
from showdown.shelf import unpreconditioned, unsmoothed, without_bonus
from showdown.slimming import MARGIN, roomy, slim

ROOT = Path(__file__).resolve().parents[1]
NOISE = np.array([0.3, -0.2, 0.1, -0.4, 0.2, 0.0, -0.1, 0.1, 0.3, -0.3])


def run(agent: str, values: Any, testbed: str = "linear-20", **settings: Any) -> AgentResult:
    """A result of sound steps with these regrets and settings."""
    made = result(agent, values, testbed=testbed)
    return dataclasses.replace(made, settings={"schedule": "curvature", "beta": 1.0, **settings})


@pytest.mark.parametrize(
    ("agent", "settings", "had"),
    [
        ("fglmcts", {"likelihood": "auto", "lam": 0.1}, "score"),
        ("fglmcts", {"likelihood": "squared", "lam": 0.1}, "mean"),
        ("neural-fglmcts", {"likelihood": "bernoulli", "lam": 0.1}, "score"),
    ],
)
def test_kept_runs_have_what_stood_in_for_later_settings(
    agent: str, settings: dict[str, Any], had: str
) -> None:
    """logistic-20 has Bernoulli rewards, and the bonus was on the score."""
    text = json.dumps(settings)
    found = json.loads(later_settings.with_later_settings("logistic-20", agent, text))
    assert set(found) == set(AGENTS[agent].settings)
    assert found | settings == found
    assert (found["bonus_on"], found["lam_schedule"]) == (had, "constant")


def test_networks_are_asked_for_as_they_were_kept() -> None:
    """The preset `beta-1` has their settings from before the noise was learned; digits are here."""
    pytest.importorskip("sklearn")
    kept = {keeping.key_of_row(row) for row in keeping.read_rows(ROOT / "results", "digits")}
    text = (ROOT / "studies" / "question-default-data.toml").read_text()
    preset, agents = (tomllib.loads(text)[name] for name in ("preset", "agents"))
    for agent in agents:
        (cell,) = plan_cells(
            "digits", agent, preset=preset, seeds=5, testbed_settings={"preprocess": "standard"}
        )
        assert run_key(cell) in kept, agent


# What is committed ---------------------------------------------------------------------------


def test_the_results_are_small() -> None:
    """A run of one seed has fewer than 80 bytes, whatever its curve, and no file is large."""
    files = [file for file in (ROOT / "results").rglob("*") if file.is_file()]
    runs = sum(pq.read_metadata(f).num_rows for f in files if f.suffix == ".parquet")
    sizes = [file.stat().st_size for file in files]
    assert sum(sizes) < 80 * runs and max(sizes) < 2e6
    figures = [file.stat().st_size for file in (ROOT / "docs" / "results").rglob("*.svg")]
    assert sum(figures) < 4e6


STUDIES = sorted((ROOT / "studies").glob("*.toml"))


@pytest.mark.parametrize("name", slow_but(["ranking", "table-main"], [f.stem for f in STUDIES]))
def test_a_study_says_what_machine_it_needs(name: str) -> None:
    file = ROOT / "studies" / f"{name}.toml"
    text = file.read_text()
    comment = text[: text.index("\n\n")]
    assert all(line.startswith("# ") for line in comment.splitlines())
    assert re.search(r"(CPU|GPU).*(minute|hour|second)", comment), "machine and time"
    needs_data = "FEELGOOD_DATA" in comment
    if not needs_data:
        assert read_study(file).store == ROOT / "studies" / "store"


def test_every_table_of_the_paper_has_its_study() -> None:
    asked = {
        name
        for file in STUDIES
        for name in re.findall(r'"([a-z0-9-]+)"', _line(file.read_text(), "table"))
    }
    assert asked == {p.table for p in all_published()}
    data = {p.testbed for p in all_published() if p.table.startswith("neural")}
    assert {f"data-{name}" for name in data} <= {file.stem for file in STUDIES}


def _line(text: str, key: str) -> str:
    return next((line for line in text.splitlines() if line.startswith(f"{key} =")), "")


# Small files ---------------------------------------------------------------------------------


def test_a_foreign_file_is_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"testbed": ["linear-20"]}), tmp_path / "results.parquet")
    with pytest.raises(FeelgoodError, match=r"results\.parquet has no column 'testbed_settings'"):
        keeping.read_rows(tmp_path)


def test_what_is_kept_comes_back(tmp_path: Path) -> None:
    """Regrets are kept in full, curves are thinned, and the total of gradients stays."""
    rng = np.random.default_rng(0)
    grid = np.unique(np.geomspace(1, 10_000, 190).astype(np.int64))
    curve = np.cumsum(rng.random((3, len(grid))), axis=1)
    curve[1, 100:] = np.nan
    health = {
        "gradients": 20.0 + rng.random((3, len(grid))),
        "acceptance": rng.random((3, len(grid))),
        "step": rng.random((3, len(grid))),
    }
    along = PosteriorAlong(
        rounds=np.array([5_000, 10_000]),
        value={"bias": rng.random((3, 2))},
        expected={"bias": rng.random((3, 2))},
        error={"bias": rng.random((3, 2))},
    )
    whole = dataclasses.replace(
        run("lmcts", [1.0 / 3.0, np.nan, 12345.678901], beta=2.5),
        rounds=10_000,
        seeds=(0, 1, 7),
        curve_rounds=grid,
        curve=curve,
        health=health,
        provenance={"device": "abacus", "batch_chains": 99},
    )
    keeping.write(tmp_path, keeping.to_rows(Kept(whole, ("a", "b"), (3, 5))))
    (kept,) = keeping.read(tmp_path)
    back = kept.result
    assert (kept.studies, kept.numbers) == (("a", "b"), (3, 5))
    every = AGENTS[whole.agent].resolve({**whole.settings, "early": 1})
    assert (back.agent, back.settings, back.seeds) == (whole.agent, every, whole.seeds)
    np.testing.assert_array_equal(back.final_regret, whole.final_regret)
    np.testing.assert_array_equal(back.diverged_at, whole.diverged_at)
    assert len(back.curve_rounds) == keeping.POINTS
    assert (back.curve_rounds[0], back.curve_rounds[-1]) == (1, 10_000)
    places = np.searchsorted(grid, back.curve_rounds)
    np.testing.assert_allclose(back.curve, whole.curve[:, places], rtol=1e-3)
    assert set(back.health) == {"gradients", "acceptance"}
    ours, theirs = chain_cost(back), chain_cost(whole)
    assert ours.gradients == pytest.approx(theirs.gradients, rel=2e-3)
    assert ours.seconds == pytest.approx(theirs.seconds)
    assert back.provenance["device"] == "abacus"
    measured = dataclasses.replace(whole, posterior=along)
    keeping.write(tmp_path, keeping.to_rows(Kept(measured)))
    back = keeping.read(tmp_path)[0].result
    assert back.posterior is not None
    np.testing.assert_allclose(back.posterior.value["bias"], along.value["bias"], rtol=1e-3)
    assert np.isnan(chain_cost(back).seconds), "measuring takes time that is not the agent's"


STUDY = 'table = "main"\ntestbeds = ["linear-20"]\nagents = ["lints", "lmcts"]\nrounds = {rounds}\n'


def put(store: Store, agent: str, value: float, rounds: int) -> None:
    """A finished cell of ten seeds whose regrets are all `value`."""
    (cell,) = plan_cells("linear-20", agent, preset="paper", rounds=rounds, seeds=10)
    made = result(agent, np.full(10, value), rounds=rounds)
    store.put(cell, dataclasses.replace(made, settings=dict(cell.settings)))


def test_stores_become_small_files(tmp_path: Path) -> None:
    """What a study asks for, newer runs first; the same again changes nothing."""
    studies, folder = tmp_path / "studies", tmp_path / "results"
    studies.mkdir()
    (studies / "mine.toml").write_text(STUDY.format(rounds=10_000))
    first, second = Store(tmp_path / "first"), Store(tmp_path / "second")
    put(first, "lints", 10.0, 10_000)
    put(first, "linucb", 10.0, 10_000)
    put(first, "lmcts", 10.0, 400)
    put(second, "lints", 20.0, 10_000)
    done = collect([first.path], studies, folder)
    assert (done.results, done.seeds, done.unasked) == (1, 10, 2)
    (file,) = done.files
    before = file.read_bytes()
    assert collect([first.path], studies, folder).unasked == 2
    assert file.read_bytes() == before
    (kept,) = keeping.read(folder)
    assert kept.studies == ("mine",)
    beside = {(all_published()[n].table, all_published()[n].agent) for n in kept.numbers}
    assert ("main", "lints") in beside
    assert all(agent == "lints" for _, agent in beside)
    collect([second.path], studies, folder)
    assert keeping.read(folder)[0].result.final_regret.tolist() == [20.0] * 10
    (studies / "mine.toml").write_text(STUDY.format(rounds=400))
    assert collect([first.path], studies, folder).results == 1, "lints is not asked for any more"
    (kept,) = keeping.read(folder)
    assert (kept.result.agent, kept.result.rounds) == ("lmcts", 400)
    assert kept.numbers, "shorter than published, and yet beside it"


#: A plug-in that registers an agent.
HERMIT = """
from feelgood import AGENTS
from feelgood.agents.uniform import Uniform


@AGENTS.register("hermit")
class Hermit(Uniform):
    \"\"\"Plays by chance.\"\"\"
"""


def test_what_is_missing_in_an_order_of_ones_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Studies one after the other, the first seeds only, with the plug-ins that they need."""
    monkeypatch.setattr(AGENTS, "_families", dict(AGENTS._families))
    monkeypatch.setattr(AGENTS, "_digests", dict(AGENTS._digests))
    head = 'testbeds = ["linear-20"]\nrounds = 8\nseeds = 30\n'
    (tmp_path / "early.toml").write_text(f'{head}agents = ["lints"]\n')
    (tmp_path / "hermit.py").write_text(HERMIT)
    own = f'{head}plugins = ["hermit.py"]\nagents = ["hermit", "linucb"]\n'
    (tmp_path / "own.toml").write_text(own)

    def left(*studies: str, below: int | None = None) -> Any:
        return missing_study(tmp_path, tmp_path / "results", Wanted(studies, below=below))

    agents = [agent for _, agent, *_ in listed(left("own", "early").cells)]
    assert agents == ["hermit", "linucb", "lints"]
    assert [seeds for *_, seeds in listed(left("early", below=13).cells)] == [13]
    assert left("own").plugins == (str(tmp_path / "hermit.py"),)
    assert left("early").plugins == ()
    with pytest.raises(FeelgoodError, match="there is no study 'late'"):
        left("late")


@pytest.mark.slow  # it runs two studies
def test_what_is_missing_is_run_in_pieces(tmp_path: Path) -> None:
    """Seeds that are here are not run again, unless their posterior is asked for and missing."""
    studies, folder, store = tmp_path / "studies", tmp_path / "results", tmp_path / "store"
    studies.mkdir()
    text = 'testbeds = ["linear-20", "linear-40"]\nagents = ["linucb", "lints"]\nrounds = 8\n'
    (studies / "mine.toml").write_text(text + "seeds = 12\n")
    (studies / "twice.toml").write_text(text + "seeds = 3\n")
    (studies / "measured.toml").write_text(
        'testbeds = ["linear-20"]\nagents = ["lints"]\nrounds = 8\nposterior_every = 4\n'
    )
    (studies / "elsewhere.toml").write_text('testbeds = ["nowhere-3"]\nagents = ["lints"]\n')
    notes: list[str] = []

    def left(study: str | None, *words: str) -> list[tuple[str, str, int, int]]:
        wanted = Wanted((study,) if study else (), *words)
        found = missing_study(studies, folder, wanted, notes.append)
        return [] if found is None else list(listed(found.cells))

    everything = ("mine",)
    beds, agents = ("linear-20", "linear-40"), ("linucb", "lints")
    assert left(*everything) == [(bed, agent, 1, 12) for bed in beds for agent in agents]
    assert left(None, "linear-40", "lints") == [("linear-40", "lints", 1, 12)]
    assert left("measured") == [("linear-20", "lints", 1, 10)]
    assert "nowhere-3" in notes[0]

    where = ["--study", "mine", "--studies", str(studies), "--results", str(folder)]

    part = ["fill", str(store), "--testbed", "linear-20", "--workers", "1", *where]
    said = CliRunner().invoke(app, part, catch_exceptions=False).stdout.splitlines()
    assert said == [f"{store}: 4 of 4 cells are there"]
    collect([store], studies, folder)
    assert left(*everything) == [("linear-40", agent, 1, 12) for agent in agents]
    assert left("measured") == [("linear-20", "lints", 1, 10)]
    command = [sys.executable, "-m", "showdown", *part]
    again = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert again.stdout == "nothing of this is missing\n"
    assert CliRunner().invoke(app, ["missing", *where]).stdout.splitlines() == [
        "linear-40 linucb: 12 runs",
        "linear-40 lints: 12 runs",
        "24 runs are missing",
    ]


@pytest.mark.slow
def test_measures_come_from_one_run_and_seconds_from_the_other(tmp_path: Path) -> None:
    """A run whose posterior was measured took longer, and is otherwise the same."""
    studies, folder = tmp_path / "studies", tmp_path / "results"
    studies.mkdir()
    text = 'testbeds = ["linear-20"]\nagents = ["lmcts"]\nrounds = 8\n'
    (studies / "plain.toml").write_text(text)
    (studies / "measured.toml").write_text(text + "posterior_every = 4\n")
    ones = {"bias": np.ones((10, 2))}
    along = PosteriorAlong(np.array([4, 8]), ones, ones, ones)
    for name, seconds, measures in (("plain", 2.0, None), ("measured", 50.0, along)):
        (cell,) = read_study(studies / f"{name}.toml").study.cells
        made = result("lmcts", np.arange(10.0), rounds=8)
        made = dataclasses.replace(made, settings=dict(cell.settings), posterior=measures)
        Store(tmp_path / name).put(cell, dataclasses.replace(made, run_s=seconds))
    for order in (("measured", "plain"), ("measured",), ("plain",), ("plain", "measured")):
        collect([tmp_path / name for name in order], studies, folder)
        (kept,) = keeping.read(folder)
        assert kept.studies == ("measured", "plain")
        assert kept.result.posterior is not None
        assert chain_cost(kept.result).seconds == pytest.approx(0.2), order


def test_labels_stay_where_the_data_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A data set's study cannot be read without the data: what it asked for is kept."""
    monkeypatch.setenv("FEELGOOD_DATA", str(tmp_path))
    studies, folder = tmp_path / "studies", tmp_path / "results"
    studies.mkdir()
    (studies / "data-adult.toml").write_text('table = "neural-simple"\ntestbeds = ["adult"]\n')
    number = next(i for i, p in enumerate(all_published()) if p.testbed == "adult")
    agent = all_published()[number].agent
    made = result(agent, [1.0, 2.0], testbed="adult", rounds=10_000)
    keeping.write(folder, keeping.to_rows(Kept(made, ("data-adult", "gone"), (number,))))
    notes: list[str] = []
    assert collect([], studies, folder, notes.append).results == 1
    (kept,) = keeping.read(folder)
    assert (kept.studies, kept.numbers) == (("data-adult",), (number,))
    assert "the dataset adult is not in" in notes[0]


# Names and pictures --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "pairs"),
    [
        (without_bonus, {"psfghmcts": "phmcts", "neural-fglmcts": "neural-lmcts", "lmcts": None}),
        (unsmoothed, {"usfglmcts": "ufglmcts", "fglmcts": None, "sfg-neural-ts": "fg-neural-ts"}),
        (unpreconditioned, {"pfglmcts": "fglmcts", "lmcts": None, "lints": None}),
    ],
)
def test_names_of_twins(change: Any, pairs: dict[str, str | None]) -> None:
    assert {name: change(name) for name in pairs} == pairs


def test_a_slim_picture_keeps_what_is_seen() -> None:
    svg = (
        '<svg><path aria-label="x" d="M1.23456,2" opacity="0.5"/>'
        '<path d="M1,1" fill="red" opacity="0"/><path opacity="0" d="M2,2"></path>'
        '<text x="1.999">0.001</text></svg>'
    )
    assert slim(svg) == '<svg><path d="M1.2,2" opacity="0.5"/><text x="2">0.001</text></svg>'


def test_a_picture_has_room_for_wide_letters() -> None:
    drawn = '<svg class="marks" width="497" height="184" viewBox="0 0 497 184"><rect width="497" '
    made = roomy(drawn)
    assert f'width="{497 + 2 * MARGIN}" height="184"' in made
    assert f'viewBox="{-MARGIN} 0 {497 + 2 * MARGIN} 184"' in made


# The command ---------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_command_ends_with_one_sentence(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "showdown", "collect", str(tmp_path / "nowhere")]
    bad = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert bad.returncode == 2
    assert "is not a results store" in bad.stderr
    assert len(bad.stderr.strip().splitlines()) == 1
