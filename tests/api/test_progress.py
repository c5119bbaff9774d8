"""The bar of a run, and what is said where there is none."""

import time

import pytest
from rich.console import Console

from feelgood.api import progress


def test_the_bar_shows_rounds_rate_and_remaining_time() -> None:
    console = Console(force_terminal=True, width=120, record=True)
    with progress.progress_bar(console) as report:
        for done in (0, 400, 800):
            report("lints", done, 1000)
            time.sleep(0.15)
    text = console.export_text()
    assert "lints" in text
    assert "800/1,000 rounds" in text
    assert "/s" in text


def test_the_bar_says_that_a_program_is_compiled() -> None:
    console = Console(force_terminal=True, width=120, record=True)
    with progress.progress_bar(console) as report:
        report("lints", 0, 1000)
        time.sleep(0.15)
    assert "compiling" in console.export_text()


def test_a_slow_agent_is_announced_once_and_with_its_reason(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = iter([0.0, 100.0, 101.0, 110.0, 120.0, *[130.0] * 9])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    with progress.progress_bar(Console(stderr=True, width=200, soft_wrap=True)) as report:
        for done in (0, 100, 110, 200, 300):  # 10 per second, after compiling for 100 seconds
            report("fglmcts on linear-20", done, 3_200)
        for done in (0, 100, 200):
            report("lints", done, 300)
    assert capsys.readouterr().err == (
        "fglmcts on linear-20: about 5 min left, or more: its bonus reads the whole history in "
        "every step.\n"
    )


def test_there_is_no_bar_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with progress.progress_bar(Console(stderr=True)) as report:
        report("lints", 0, 10)
        report("lints", 10, 10)
    assert capsys.readouterr().err == ""
