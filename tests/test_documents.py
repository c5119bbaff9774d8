"""Every command and every piece of Python in the documentation is run."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import webbrowser
from pathlib import Path

import pytest
from fences import snippets

import feelgood
from feelgood import cli

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def pages_that_run() -> list[object]:
    """Every page is one quick test; one with something slow in it is a second, slow one."""
    out: list[object] = []
    for page in PAGES:
        marks = [s.mark for s in snippets(page) if s.runs]
        if None in marks:
            out.append(pytest.param(page, False, id=name_of(page)))
        if "slow" in marks:
            out.append(pytest.param(page, True, id=f"{name_of(page)}, all", marks=pytest.mark.slow))
    return out


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


@pytest.mark.parametrize(("page", "slow"), pages_that_run())
def test_what_the_page_shows_works(
    page: Path, slow: bool, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From top to bottom in one folder, as a reader would, in this process."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(webbrowser, "open", lambda url: True)
    for snippet in snippets(page):
        if not snippet.runs or (snippet.mark == "slow" and not slow):
            continue
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


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_command_is_run_or_says_why_not(page: Path) -> None:
    """A fence of any other kind holds no command; one that is not run has its reason before it."""
    for snippet in snippets(page):
        if "feelgood" in [line.split(" ")[0] for line in snippet.text.splitlines()]:
            marked = (snippet.mark or "").startswith("not run: ")
            assert snippet.runs or marked, f"{name_of(page)}:{snippet.line} is never run"


def shows_tests(page: Path) -> bool:
    return any((s.title or "").startswith("test_") for s in snippets(page))


@pytest.mark.parametrize("page", list(filter(shows_tests, PAGES)), ids=name_of)
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


def test_a_file_in_the_package_is_all_that_a_new_thing_needs(tmp_path: Path) -> None:
    """The pages' files, put into a copy of the package, are listed; nothing else is touched."""
    package = tmp_path / "feelgood"
    shutil.copytree(Path(feelgood.__file__).parent, package)
    for page, kind in (
        ("adding-an-agent.md", "agents"),
        ("adding-a-testbed.md", "testbeds"),
        ("adding-a-dataset.md", "data"),
    ):
        first = next(s for s in snippets(ROOT / "docs" / page) if s.title)
        assert first.title is not None
        (package / kind / first.title).write_text(first.text)
    listed = execute([sys.executable, "-m", "feelgood", "list"], tmp_path)
    assert "boltzmann" in listed.split()
    assert "bumps" in listed.split()
    assert "tiles" in listed.split()
    data = execute([sys.executable, "-m", "feelgood", "data", "list"], tmp_path)
    assert "four tiles (made up)" in data
