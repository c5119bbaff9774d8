"""Five tasks, done with what the site says and nothing else, from the wheel in an empty folder.

The pages' own code is run, from top to bottom; what a reader must see at the end is checked here.
"""

import contextlib
import re
from pathlib import Path

import pytest
from clean_install import ROOT, install, run
from fences import Snippet, snippets
from serving import Served, post

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install(tmp_path_factory.mktemp("five"))


def walk(page: str, clean: Path, folder: Path, since: str = "", upto: str | None = None) -> str:
    """All that the commands and the Python of a page print, from one heading to another."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    start = text[: text.index(since)].count("\n")
    end = text[: text.index(upto)].count("\n") if upto else len(text)
    shown = [s for s in snippets(ROOT / "docs" / page) if start <= s.line < end]
    for snippet in shown:
        if snippet.title is not None:
            (folder / snippet.title).write_text(snippet.text)
    return "".join(said for snippet in shown for said in printed(snippet, clean, folder))


def printed(snippet: Snippet, clean: Path, folder: Path) -> list[str]:
    if not snippet.runs:
        return []
    if snippet.language == "python":
        return [run(clean / "bin" / "python", "-c", snippet.text, cwd=folder)]
    lines = [line.split("#")[0].split() for line in snippet.text.splitlines()]
    return [run(clean / "bin" / "feelgood", *line[1:], cwd=folder) for line in lines if line]


def test_compare_two_agents(clean: Path, tmp_path: Path) -> None:
    said = walk("tutorial.md", clean, tmp_path, upto="## 3.")
    assert "against linucb" in said
    assert (tmp_path / "regret.html").stat().st_size > 1000


def test_add_a_sampler_and_prove_it(clean: Path, tmp_path: Path) -> None:
    said = walk("adding-a-sampler.md", clean, tmp_path)
    assert "barkerts" in said
    options = ("-q", "-p", "no:cacheprovider")
    proof = run(clean / "bin" / "python", "-m", "pytest", *options, "test_barker.py", cwd=tmp_path)
    assert "1 passed" in proof


def test_pick_a_policy_from_a_log(clean: Path, tmp_path: Path) -> None:
    said = walk("off-policy.md", clean, tmp_path)
    assert re.search(r"linucb .*(better|best|more)", said, re.IGNORECASE | re.DOTALL)
    assert (tmp_path / "agents.html").exists()


def test_serve_it(clean: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From a log to a policy to a service that decides and learns over HTTP."""
    page = "serving.md"
    assert "](../examples/service.py)" in (ROOT / "docs" / page).read_text(encoding="utf-8")
    said = walk(page, clean, tmp_path, since="## From a log", upto="## Speed")
    assert "lints" in said
    monkeypatch.delenv("PYTHONPATH", raising=False)
    python, log = clean / "bin" / "python", str(tmp_path / "shop.arrow")
    with Served(tmp_path / "shop", "--log", log, python=python) as served:
        with contextlib.closing(served.link()) as link:
            code, made = post(link, "/act", {"context": [-1.0, 1.0, 1.0]})
            assert (code, made["arm"], made["version"]) == (200, "rum", 1_200)
            paid = post(link, "/reward", {"id": made["id"], "reward": 1.5})
        assert paid == (200, {"version": 1_201})
        assert served.stop() == 0


def test_make_a_challenge_entry(clean: Path, tmp_path: Path) -> None:
    said = walk("challenge.md", clean, tmp_path)
    assert re.search(r"half-ucb is better than \d+ of \d+ agents", said)
    assert "right agent: has the same regrets" in said
    assert "WRONG" not in said
