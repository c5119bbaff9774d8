"""A new dataset is one file and one test: what the page about it shows, as a plug-in."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from fences import snippets
from typer.testing import CliRunner

import feelgood
from feelgood import TESTBEDS, FeelgoodError
from feelgood.cli.commands import app
from feelgood.core.plugins import load_plugins
from feelgood.data import catalogue
from feelgood.data.datasets import DataAbsent, load_dataset
from feelgood.data.fetching import fetch
from feelgood.studies.planning import outline

PAGE = Path(__file__).parents[2] / "docs" / "adding-a-dataset.md"
PUBLISHED = "0.5,1,a\n-1,0,b\n2,3,a\n0,-0.5,b\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The page's file, alone; what it registers is forgotten afterwards."""
    TESTBEDS.names()
    for table in (catalogue.DATASETS, catalogue.BANDIT_PROBLEMS, TESTBEDS._families):
        monkeypatch.setitem(table, "tiles", None)
        monkeypatch.delitem(table, "tiles")
    monkeypatch.setenv("FEELGOOD_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("FEELGOOD_DATA", raising=False)
    first = next(s for s in snippets(PAGE) if s.title == "tiles.py")
    (tmp_path / "tiles.py").write_text(first.text)
    (tmp_path / "tiles.csv").write_text(PUBLISHED)
    return tmp_path


def test_one_file_is_all_that_a_dataset_needs(folder: Path) -> None:
    load_plugins([str(folder / "tiles.py")])
    with pytest.raises(DataAbsent, match="run 'feelgood data fetch tiles'"):
        TESTBEDS["tiles"].build()
    fetch("tiles", given=folder)
    np.testing.assert_array_equal(load_dataset("tiles")["y"], [0, 1, 0, 1])
    assert "four tiles (made up)" in CliRunner().invoke(app, ["data", "list"]).output
    assert "tiles" in TESTBEDS.names()
    testbed = TESTBEDS["tiles"].build()
    _, spec, rounds = outline("tiles", {"preprocess": "standard"})
    assert (testbed.spec, testbed.rounds) == (spec, rounds)
    result = feelgood.run("tiles", ["uniform"], seeds=2)
    assert result["uniform"].rounds == 100


def test_the_same_file_again_replaces_itself_and_another_is_refused(folder: Path) -> None:
    file = folder / "tiles.py"
    load_plugins([str(file)])
    before = TESTBEDS.digest("tiles")
    file.write_text(file.read_text().replace("four tiles", "some tiles"))
    load_plugins([str(file)])
    assert catalogue.DATASETS["tiles"].doc == "some tiles (made up)"
    assert before is not None and TESTBEDS.digest("tiles") != before, "part of a cell's identity"
    other = folder / "other.py"
    shutil.copy(file, other)
    with pytest.raises(FeelgoodError, match="the dataset name 'tiles' is taken: register under"):
        load_plugins([str(other)])
    assert catalogue.DATASETS["tiles"].doc == "some tiles (made up)"
