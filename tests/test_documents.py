"""Every command and every piece of Python in the documentation is run.

Quick tests check that all of them are understood, and walk through one page; `make test-all` walks
through all pages. README is walked through from the wheel, in `test_wheel_install.py`.
"""

import ast
import os
import re
import shlex
import shutil
import subprocess
import sys
import webbrowser
from pathlib import Path
from typing import Any

import pytest
import typer
from fences import Snippet, snippets

import feelgood
from feelgood import cli
from feelgood.cli.commands import app

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
#: The page whose reader writes code of his own.
WALKED = ROOT / "docs" / "adding-an-agent.md"


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def slow_but_walked(pages: list[Path]) -> list[object]:
    """All pages; those that are not walked through quickly as slow tests."""
    return [
        pytest.param(page, id=name_of(page), marks=() if page == WALKED else pytest.mark.slow)
        for page in pages
    ]


def runs(page: Path) -> bool:
    return any(snippet.runs for snippet in snippets(page))


def execute(command: list[str], folder: Path) -> str:
    tools = Path(sys.executable).parent
    env = os.environ | {"PATH": f"{tools}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "120"}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture
def folder(page: Path, tmp_path: Path) -> Path:
    """An empty folder with the files that the page shows."""
    for snippet in snippets(page):
        if snippet.title is not None:
            (tmp_path / snippet.title).write_text(snippet.text)
    return tmp_path


@pytest.mark.parametrize("page", slow_but_walked(list(filter(runs, PAGES))))
def test_what_the_page_shows_works(
    page: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From top to bottom in one folder, as a reader would, in this process."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(webbrowser, "open", lambda url: True)
    for snippet in snippets(page):
        if not snippet.runs:
            continue
        assert page != WALKED or snippet.mark != "slow", "choose another page to walk through"
        if snippet.language == "python":
            source = "\n" * snippet.line + snippet.text  # so that errors name the page's line
            exec(compile(source, name_of(page), "exec"), {"__name__": "__main__"})
            continue
        for number, line in enumerate(snippet.text.splitlines(), snippet.line + 1):
            run_line(line, f"{name_of(page)}:{number}", folder, monkeypatch)


def run_line(line: str, where: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = shlex.split(line, comments=True)
    if not command:
        return
    assert command[0] == "feelgood", f"{where}: only our own command is run"
    if "--plugin" in command:  # what it registers would stay for the other tests
        execute(command, folder)
        return
    monkeypatch.setattr(sys, "argv", command)
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert stop.value.code == 0, f"{where}: {line}"


def commands_of(snippet: Snippet) -> list[list[str]]:
    lines = [shlex.split(line, comments=True) for line in snippet.text.splitlines()]
    return [line for line in lines if line[:1] == ["feelgood"]]


def understood(command: list[str]) -> None:
    """The command line is parsed, and nothing is run."""
    group: Any = typer.main.get_command(app)
    place = 1
    while hasattr(group, "commands") and not command[place].startswith("-"):
        assert command[place] in group.commands, command
        group, place = group.commands[command[place]], place + 1
    if not {"--help", "--version"} & set(command):
        group.make_context("feelgood", command[place:])


def names_exist(source: str) -> None:
    """What Python takes from the package is there."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            exec(compile(ast.Module([node], []), "imports", "exec"), {})
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            assert node.value.id != "feelgood" or hasattr(feelgood, node.attr), node.attr


@pytest.mark.parametrize("page", list(filter(runs, PAGES)), ids=name_of)
def test_what_the_page_shows_is_understood(page: Path, folder: Path) -> None:
    del folder
    for snippet in snippets(page):
        if snippet.runs and snippet.language == "python":
            names_exist(snippet.text)
        elif snippet.runs:
            for command in commands_of(snippet):
                understood(command)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_command_is_run_or_says_why_not(page: Path) -> None:
    """A fence of any other kind holds no command; one that is not run has its reason before it."""
    for snippet in snippets(page):
        if "feelgood" in [line.split(" ")[0] for line in snippet.text.splitlines()]:
            marked = (snippet.mark or "").startswith("not run: ")
            assert snippet.runs or marked, f"{name_of(page)}:{snippet.line} is never run"


def shows_tests(page: Path) -> bool:
    return any((s.title or "").startswith("test_") for s in snippets(page))


@pytest.mark.slow
@pytest.mark.parametrize("page", slow_but_walked(list(filter(shows_tests, PAGES))))
def test_the_tests_that_the_page_shows_pass(page: Path, folder: Path) -> None:
    shown = sorted(path.name for path in folder.glob("test_*.py"))
    assert shown
    execute([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *shown], folder)


def test_the_page_of_commands_is_what_the_program_says() -> None:
    from feelgood.cli.reference import reference

    assert (ROOT / "docs" / "commands.md").read_text() == reference(), "run `make docs`"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("adding-*.md")), ids=name_of)
def test_pages_on_adding_say_how_many_files(page: Path) -> None:
    """In bold, in the first sentence below the title."""
    assert re.match(
        r"# Adding .+\n\n\*\*[^*]* (at most )?\d (file|row)s?[^*]*\*\*", page.read_text()
    )


def test_a_file_in_the_package_is_all_that_a_new_thing_needs(tmp_path: Path) -> None:
    """The pages' files, put into a copy of the package, are listed; nothing else is touched."""
    package = tmp_path / "feelgood"
    shutil.copytree(Path(feelgood.__file__).parent, package)
    for page, kind in (
        ("adding-an-agent.md", "agents"),
        ("adding-a-sampler.md", "samplers"),
        ("adding-a-testbed.md", "testbeds"),
        ("adding-a-dataset.md", "data"),
    ):
        first = next(s for s in snippets(ROOT / "docs" / page) if s.title)
        assert first.title is not None
        (package / kind / first.title).write_text(first.text)
    listed = execute([sys.executable, "-m", "feelgood", "list"], tmp_path)
    assert "boltzmann" in listed.split()
    assert "barkerts" in execute([sys.executable, "-m", "feelgood", "list", "barkerts"], tmp_path)
    assert "bumps" in listed.split()
    assert "tiles" in listed.split()
    data = execute([sys.executable, "-m", "feelgood", "data", "list"], tmp_path)
    assert "four tiles (made up)" in data
