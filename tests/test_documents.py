"""Every command and every piece of Python in the documentation is run."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

import feelgood
from feelgood import cli

ROOT = Path(__file__).resolve().parents[1]
#: Pages whose commands are quick; those of the others are slow tests.
QUICK = {"README.md", "index.md", "concepts.md", "adding-an-agent.md", "adding-a-testbed.md"}
#: Pages whose commands build on those before them.
ONE_AFTER_THE_OTHER = {"studies.md", "posterior.md"}
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


class Snippet(NamedTuple):
    page: Path
    line: int
    language: str
    title: str | None
    text: str


def snippets(page: Path) -> list[Snippet]:
    text = page.read_text()
    fence = re.compile(r"^```(\w+)(?: title=(\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
    return [
        Snippet(page, text[: m.start()].count("\n") + 1, m[1], m[2], m[3])
        for m in fence.finditer(text)
    ]


def runs() -> list[object]:
    """A bash command, or a piece of Python that is no file, each a test of its own."""
    out: list[object] = []
    for page in PAGES:
        marks = [] if page.name in QUICK else [pytest.mark.slow]
        for snippet in snippets(page):
            if snippet.title is not None:
                continue
            lines = [snippet.text]
            if snippet.language == "bash" and page.name not in ONE_AFTER_THE_OTHER:
                lines = snippet.text.splitlines()
            for i, line in enumerate(lines):
                part = snippet._replace(line=snippet.line + 1 + i, text=line)
                label = f"{page.name}:{part.line}"
                out.append(pytest.param(part, id=label, marks=marks))
    return out


def execute(command: list[str], folder: Path) -> str:
    tools = Path(sys.executable).parent
    env = os.environ | {"PATH": f"{tools}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "120"}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture
def folder(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """An empty folder with the files that the page shows."""
    page = request.node.callspec.params.get("snippet", request.node.callspec.params.get("page"))
    for snippet in snippets(page.page if isinstance(page, Snippet) else page):
        if snippet.title is not None:
            (tmp_path / snippet.title).write_text(snippet.text)
    return tmp_path


@pytest.mark.parametrize("snippet", runs())
def test_what_the_page_shows_works(
    snippet: Snippet, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In this process, where programs are compiled already; plugins and `list` in their own."""
    monkeypatch.chdir(folder)
    if snippet.language == "python":
        exec(compile(snippet.text, snippet.page.name, "exec"), {"__name__": "__main__"})
        return
    assert snippet.language == "bash"
    for line in snippet.text.splitlines():
        run_line(shlex.split(line, comments=True), folder, monkeypatch)


def run_line(command: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert command[0] == "feelgood", "only our own command is run"
    if "--plugin" in command or command[1] == "list":
        execute(command, folder)
    else:
        monkeypatch.setattr(sys, "argv", command)
        with pytest.raises(SystemExit) as stop:
            cli.main()
        assert stop.value.code == 0


def shows_tests(page: Path) -> bool:
    return any((s.title or "").startswith("test_") for s in snippets(page))


@pytest.mark.parametrize("page", list(filter(shows_tests, PAGES)), ids=lambda page: page.name)
def test_the_tests_that_the_page_shows_pass(page: Path, folder: Path) -> None:
    shown = sorted(path.name for path in folder.glob("test_*.py"))
    assert shown
    execute([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *shown], folder)


def test_the_table_of_the_readme_is_what_the_command_gives() -> None:
    """Means to half a standard deviation: other processors round differently."""
    text = (ROOT / "README.md").read_text()
    rows = re.findall(r"^│ (\w+) +│ +([\d,.]+) ± +([\d,.]+) │", text, re.MULTILINE)
    assert [row[0] for row in rows] == ["lints", "linucb", "uniform"]
    result = feelgood.run("linear-20", [row[0] for row in rows], rounds=10_000, seeds=10)
    for (_, mean, std), r in zip(rows, result, strict=True):
        shown, spread = (float(number.replace(",", "")) for number in (mean, std))
        assert abs(shown - r.regret.mean) < 0.5 * spread
        assert abs(spread - r.regret.std) < 0.5 * spread


def test_the_page_of_commands_is_what_the_program_says() -> None:
    from feelgood.cli.reference import reference

    assert (ROOT / "docs" / "commands.md").read_text() == reference(), "run `make docs`"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def test_a_file_in_the_package_is_all_that_a_new_agent_needs(tmp_path: Path) -> None:
    """The pages' files, put into a copy of the package, are listed; nothing else is touched."""
    package = tmp_path / "feelgood"
    shutil.copytree(Path(feelgood.__file__).parent, package)
    for page, kind in (("adding-an-agent.md", "policies"), ("adding-a-testbed.md", "testbeds")):
        first = next(s for s in snippets(ROOT / "docs" / page) if s.title)
        assert first.title is not None
        (package / kind / first.title).write_text(first.text)
    listed = execute([sys.executable, "-m", "feelgood", "list"], tmp_path)
    assert "boltzmann" in listed.split()
    assert "bumps" in listed.split()
