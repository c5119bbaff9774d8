"""The page in a real browser, from a file, without a network."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from made_up import made_up, swept

from feelgood.paper.tables import rows as published_rows
from feelgood.report.page import build_page
from feelgood.report.tables import compare_row

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium on this machine")

HOSTILE = "</script><img src=x onerror=window.hacked=1>"
DRAWN = "#curves .chart svg .mark-line path"
#: The machine may be busy; a test that passes takes a fraction of this.
PATIENCE = 60_000

Page = sync_api.Page
Open = Callable[..., Page]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two testbeds, a diverged chain, sweeps, published numbers and a hostile name."""
    linucb = made_up("linucb", "linear-40", level=120.0, rounds=10_000)
    results = [
        *swept(),
        made_up("malats", "linear-40", level=90.0, diverged=1, rounds=10_000),
        linucb,
        made_up("lints", "linear-40", level=60.0, rounds=10_000, provenance={"commit": "c0ffee"}),
        made_up(HOSTILE, "linear-40", level=300.0, rounds=10_000),
    ]
    published = [
        compare_row(row, linucb)
        for row in published_rows("main", ["linear-40"], ["linucb"])
        if row.published.beta != 1
    ]
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(build_page(results, title="A <study>", comparisons=published), "utf-8")
    return path


@pytest.fixture(scope="module")
def browser() -> Iterator[object]:
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def open_page(browser: object, file: Path) -> Iterator[Open]:
    """Opens the page; at the end nothing was said on the console and nothing was asked for."""
    said: list[str] = []
    asked: list[str] = []
    contexts = []

    def start(width: int = 1280, height: int = 900, scheme: str = "light") -> Page:
        context = browser.new_context(  # type: ignore[attr-defined]
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
    page.locator(f"#{section}").scroll_into_view_if_needed()
    page.locator(f"#{section} .chart svg").first.wait_for()


def on_linear_40(page: Page) -> None:
    page.get_by_role("button", name="linear-40").click()
    see(page, "curves")


def test_charts_are_drawn_and_agents_switched(open_page: Open) -> None:
    page = open_page()
    assert page.title() == "A <study>"
    on_linear_40(page)
    lines = page.locator(DRAWN)
    assert lines.count() == 4
    top = page.locator("#curves .chart svg").inner_html()
    button = page.locator("#agents").get_by_role("button", name="malats", exact=True)
    assert button.get_attribute("aria-pressed") == "true"
    button.click()
    page.wait_for_function(f"document.querySelectorAll('{DRAWN}').length === 3")
    assert button.get_attribute("aria-pressed") == "false"
    assert page.locator("#agents-count").inner_text() == "3 of 4"
    assert page.locator("#curves .chart svg").inner_html() != top
    see(page, "final")
    page.wait_for_function(
        "!document.querySelector('#final .chart').textContent.includes('malats')"
    )
    page.get_by_role("button", name="None").click()
    page.wait_for_function(f"document.querySelectorAll('{DRAWN}').length === 0")
    page.get_by_role("button", name="All").click()
    page.wait_for_function(f"document.querySelectorAll('{DRAWN}').length === 4")


def test_axes_become_logarithmic_and_hovering_tells_numbers(open_page: Open) -> None:
    page = open_page()
    on_linear_40(page)
    before = page.locator("#curves .chart").get_attribute("data-drawn")
    ticks = page.locator("#curves .chart svg").text_content()
    page.locator("#curves").get_by_role("button", name="Log regret").click()
    page.wait_for_function(f"document.querySelector('#curves .chart').dataset.drawn !== '{before}'")
    assert page.locator("#curves .chart svg").text_content() != ticks
    page.locator(DRAWN).first.wait_for()
    box = page.locator("#curves .chart svg").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 0.6 * box["width"], box["y"] + 0.3 * box["height"])
    tooltip = page.locator("#vg-tooltip-element.visible")
    tooltip.wait_for()
    assert "mean regret" in tooltip.inner_text()


def test_tables_are_sorted_and_specifications_unfold(open_page: Open) -> None:
    page = open_page()
    on_linear_40(page)
    table = page.locator("#numbers table")

    def column(k: int) -> list[str]:
        return [c.strip() for c in table.locator(f"tr.row td:nth-child({k})").all_inner_texts()]

    assert column(1) == ["lints", "malats", "linucb", HOSTILE]
    head = table.locator("th", has_text="mean regret")
    head.get_by_role("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    head.get_by_role("button").click()
    assert head.get_attribute("aria-sort") == "descending"
    assert column(1) == [HOSTILE, "linucb", "malats", "lints"]
    means = [float(v) for v in column(2)]
    assert means == sorted(means, reverse=True)
    more = table.get_by_role("button", name="Specification of lints")
    more.click()
    assert more.get_attribute("aria-expanded") == "true"
    assert "c0ffee" in table.locator("tr.spec:visible").inner_text()
    beside = page.locator("#published table")
    assert "126.3" in beside.inner_text()
    assert beside.locator(".badge").inner_text() in ("agrees", "differs", "not comparable")


def test_sections_follow_the_testbed(open_page: Open) -> None:
    page = open_page()
    page.locator("#problems button").first.click()
    see(page, "sweeps")
    assert page.locator("#sweeps figure").count() == 2
    assert page.locator("#published").is_hidden()
    page.get_by_role("button", name="linear-40").click()
    assert page.locator("#sweeps").is_hidden()
    assert page.locator("#published").is_visible()
    see(page, "health")
    page.get_by_role("button", name="Step size").click()
    page.wait_for_function(
        "document.querySelector('#health .chart').textContent.includes('step size')"
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_theme_follows_the_system_and_the_button(open_page: Open, scheme: str) -> None:
    page = open_page(scheme=scheme)
    on_linear_40(page)
    stroke = "document.querySelector(\"#curves .chart svg .mark-line path\").getAttribute('stroke')"
    first = page.evaluate(stroke)
    paper = page.evaluate("getComputedStyle(document.querySelector('.card')).backgroundColor")
    assert (paper == "rgb(255, 255, 255)") == (scheme == "light")
    other = {"light": "dark", "dark": "light"}[scheme]
    page.get_by_role("button", name=f"{other.capitalize()} theme").click()
    page.wait_for_function(f"document.querySelector('{DRAWN}') && {stroke} !== '{first}'")
    assert page.evaluate("document.documentElement.dataset.theme") == other


def test_everything_is_reached_with_the_keyboard(open_page: Open) -> None:
    page = open_page()
    seen = []
    for _ in range(30):
        page.keyboard.press("Tab")
        seen.append(page.evaluate("document.activeElement.innerText.trim()"))
        if seen[-1] == "linear-40":
            page.keyboard.press("Enter")
        if seen[-1] == "lints" and page.locator("#problems [aria-pressed=true]").inner_text() == (
            "linear-40"
        ):
            outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
            assert outline == "solid"
            page.keyboard.press("Space")
            break
    assert seen[0] == "Skip to the results"
    assert page.locator("#agents-count").inner_text() == "3 of 4"
    head = page.locator("#numbers th button").first
    head.focus()
    page.keyboard.press("Enter")
    assert page.locator("#numbers th").first.get_attribute("aria-sort") == "ascending"


def test_the_page_fits_a_phone(open_page: Open) -> None:
    page = open_page(width=390, height=844)
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    assert not page.locator("#agents").is_visible()
    page.locator("#agents-box summary").click()
    assert page.locator("#agents").is_visible()
    on_linear_40(page)
    box = page.locator("#curves .chart svg").bounding_box()
    assert box is not None
    assert 250 < box["width"] < 390
    page.get_by_role("button", name="Specification of lints").click()
    assert page.evaluate("document.documentElement.scrollWidth") == 390
