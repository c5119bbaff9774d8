"""Pages in a real browser, from files, without a network."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("chrome")
#: The machine may be busy; a test that passes takes a fraction of this.
PATIENCE = 60_000
#: Marks that show numbers when the pointer is over them; curves have cells around their points.
TELLING = (".mark-symbol", ".mark-rect", ".mark-path")

Page = Any  # of playwright, which need not be installed
Open = Callable[..., Page]


@contextmanager
def launched() -> Iterator[Any]:
    """A browser; skips the test where there is none."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("there is no chromium on this machine")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@contextmanager
def opened(path: Path) -> Iterator[Page]:
    """The page of a file once its charts are drawn; skips the test where there is no browser."""
    with launched() as browser:
        page = browser.new_page()
        page.goto(path.resolve().as_uri())
        page.wait_for_selector("svg .mark-line path", state="attached", timeout=PATIENCE)
        yield page


@contextmanager
def watched(browser: Any, file: Path) -> Iterator[Open]:
    """Opens the page; at the end nothing was said on the console and nothing was asked for."""
    said: list[str] = []
    asked: list[str] = []
    contexts = []

    def start(width: int = 1280, height: int = 900, scheme: str = "light") -> Page:
        context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme, offline=True
        )
        context.set_default_timeout(PATIENCE)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: said.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(file.as_uri())
        page.locator("#numbers table").wait_for()
        return page

    yield start
    assert said == []
    assert asked == [file.as_uri()] * len(contexts)
    assert all(c.pages[0].evaluate("window.hacked") is None for c in contexts)
    for context in contexts:
        context.close()


def see(page: Page, section: str) -> None:
    """Scroll to a section and wait for its chart."""
    page.locator(f"#{section}").scroll_into_view_if_needed()
    page.locator(f"#{section} .chart svg").first.wait_for()


def tooltips(page: Page, section: str) -> list[str]:
    """What is shown over some of the marks of a section's charts.

    The pointer's events are sent to the marks themselves: some lie below others.
    """
    found = page.evaluate(
        """async ([section, kinds]) => {
            const told = [];
            const groups = kinds.flatMap((kind) =>
                [...document.querySelectorAll(`#${section} .chart svg .role-mark${kind}`)]);
            const marks = groups.flatMap((group) => {
                const all = [...group.querySelectorAll("path")];
                return all.filter((_, i) => i % Math.ceil(all.length / 4) === 0);
            });
            for (const mark of marks) {
                const box = mark.getBoundingClientRect();
                const at = { bubbles: true, clientX: box.x + box.width / 2,
                    clientY: box.y + box.height / 2 };
                mark.dispatchEvent(new PointerEvent("pointerover", at));
                mark.dispatchEvent(new MouseEvent("mouseover", at));
                mark.dispatchEvent(new PointerEvent("pointermove", at));
                mark.dispatchEvent(new MouseEvent("mousemove", at));
                await new Promise((done) => setTimeout(done, 5));
                const shown = document.querySelector("#vg-tooltip-element.visible");
                if (shown) told.push([...shown.querySelectorAll("tr")]
                    .map((row) => [...row.cells].map((c) => c.textContent).join(" ")).join("\\n"));
                mark.dispatchEvent(new PointerEvent("pointerout", at));
                mark.dispatchEvent(new MouseEvent("mouseout", at));
            }
            return told;
        }""",
        [section, list(TELLING)],
    )
    assert isinstance(found, list)
    return found
