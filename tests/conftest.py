"""What every test runs with."""

import gc
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import browsing
import commands
import pytest

SLOW_CASES = Path(__file__).with_name("slow_cases.txt")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the cases of `slow_cases.txt`; a line whose file was read whole must name one."""
    lines = SLOW_CASES.read_text(encoding="utf-8").splitlines()
    listed = {line for line in lines if line and not line.startswith("#")}
    here = {item.nodeid: item for item in items}
    for name in listed & here.keys():
        here[name].add_marker(pytest.mark.slow)
    if not any("::" in argument for argument in config.args):
        files = {item.nodeid.split("::")[0] for item in items}
        lost = sorted(n for n in listed - here.keys() if n.split("::")[0] in files)
        if lost:
            raise pytest.UsageError(f"{SLOW_CASES.name} names a test that is not there: {lost[0]}")


def pytest_collection_finish() -> None:
    """What is loaded now stays: the garbage collector need not look at it in every test."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def own_program_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Compiled programs of the tests, and of the commands they start, stay out of the user's.

    Workers of one session share them.
    """
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FEELGOOD_CACHE", str(folder / "cache"))
        assert os.environ["FEELGOOD_CACHE"]
        yield


@pytest.fixture
def command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> commands.Command:
    """`feelgood ARGUMENTS`."""
    return commands.calling(monkeypatch, capsys)


@pytest.fixture
def reproduce(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> commands.Command:
    """`feelgood reproduce ARGUMENTS`, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return commands.calling(monkeypatch, capsys, "reproduce")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """One browser for the tests of a file."""
    with browsing.launched() as started:
        yield started


@pytest.fixture
def open_page(browser: Any, file: Path) -> Iterator[browsing.Open]:
    """Opens the page that the fixture `file` of a test file has written."""
    with browsing.watched(browser, file) as start:
        yield start
