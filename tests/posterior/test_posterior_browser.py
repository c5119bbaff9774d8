"""The page's sections on posteriors in a real browser; what they hold is tested without one."""

from pathlib import Path

import pytest
from browsing import Open, see, tooltips
from made_up import measured, small_analysis

from feelgood.report.page import build_page

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six agents that were measured along their runs, and an analysis of two."""
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(build_page(measured(6), analyses=[small_analysis()]), "utf-8")
    return path


def test_the_error_along_the_run_and_the_correlations(open_page: Open) -> None:
    page = open_page()
    see(page, "posterior")
    charts = page.locator("#posterior .chart")
    assert charts.count() == 2
    page.wait_for_function("document.querySelectorAll('#posterior .chart svg').length === 2")
    assert "arm choice" in (charts.nth(0).text_content() or "")
    button = page.locator("#posterior").get_by_role("button", name="Variance", exact=True)
    button.click()
    assert button.get_attribute("aria-pressed") == "true"
    for k in range(2):
        page.wait_for_function(
            f"document.querySelectorAll('#posterior .chart')[{k}].textContent"
            ".includes('variance ratio')"
        )
    said = tooltips(page, "posterior")
    assert len(said) > 5
    for text in said:
        assert text.startswith("agent ") and "undefined" not in text and "NaN" not in text, text
    table = page.locator("#posterior table")
    assert "Spearman" in table.inner_text() and "+1.00" in table.inner_text()
    table.locator("th button").nth(1).click()
    assert table.locator("th").nth(1).get_attribute("aria-sort") == "ascending"
    # Switching an agent off takes it out of both charts.
    lines = "document.querySelectorAll('#posterior .chart svg .mark-symbol path').length"
    before = page.evaluate(lines)
    page.locator("#agents").get_by_role("button", name="malats", exact=True).click()
    page.wait_for_function(f"{lines} < {before}")


def test_the_figure_of_the_paper(open_page: Open) -> None:
    page = open_page()
    page.get_by_role("button", name="posteriors on linear-20").click()
    see(page, "draws")
    figure = page.locator("#draws .chart")
    page.wait_for_function("document.querySelector('#draws .chart').textContent.includes('arm 4')")
    said = figure.text_content() or ""
    assert "lints" in said and "lmcts" in said and "exact posterior" in said
    assert page.locator("#numbers").is_hidden() and page.locator("#posterior").is_hidden()
    assert page.locator("#draws tr.row").count() == 3, "lmcts also beside its own target"
    page.locator("#agents").get_by_role("button", name="lmcts", exact=True).click()
    page.wait_for_function("!document.querySelector('#draws .chart').textContent.includes('lmcts')")


def test_the_figure_scrolls_on_a_phone(open_page: Open) -> None:
    page = open_page(width=390, height=844, scheme="dark")
    page.locator("#problems-box summary").click()
    page.get_by_role("button", name="posteriors on linear-20").click()
    see(page, "draws")
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    wider = "document.querySelector('#draws .chart').scrollWidth"
    page.wait_for_function(f"{wider} > 390")
    assert page.locator("#draws .chart").get_attribute("tabindex") == "0"
