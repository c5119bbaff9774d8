"""A page in a real browser."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("chrome")


@contextmanager
def opened(path: Path) -> Iterator[Any]:
    """The page of a file once its charts are drawn; skips the test where there is no browser."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("there is no chromium on this machine")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(path.resolve().as_uri())
        page.wait_for_selector("svg .mark-line path", state="attached", timeout=60_000)
        yield page
        browser.close()
