"""The page in a real browser, from a file, without a network.

Quick: the charts and the tables, as a person sees them first. The rest is slow.
"""

import csv
import dataclasses
import io
import itertools
from pathlib import Path

import pytest
from browsing import Open, Page, see, tooltips
from made_up import made_up, swept

from feelgood.paper.published_rows import rows as published_rows
from feelgood.report.page import build_page
from feelgood.report.published_comparisons import compare_row

HOSTILE = "</script><img src=x onerror=window.hacked=1>"
DRAWN = "#curves .chart svg .mark-line path"
BANDS = "#curves .chart svg .mark-area path"
NOTICE = f"2 of 40 cells are left out: {HOSTILE}"


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two testbeds, a diverged chain, sweeps, published numbers and a hostile name.

    On linear-40 one agent is far above the others, and the curves of two are equal.
    """
    linucb = made_up("linucb", "linear-40", level=120.0, rounds=10_000)
    results = [
        *swept(),
        made_up("malats", "linear-40", level=90.0, diverged=1, rounds=10_000),
        linucb,
        made_up("lints", "linear-40", level=60.0, rounds=10_000, provenance={"commit": "c0ffee"}),
        made_up(HOSTILE, "linear-40", level=3000.0, rounds=10_000),
        dataclasses.replace(linucb, agent="twin"),
    ]
    published = [
        compare_row(row, linucb)
        for row in published_rows("main", ["linear-40"], ["linucb"])
        if row.published.beta != 1
    ]
    path = tmp_path_factory.mktemp("page") / "report.html"
    text = build_page(results, title="A <study>", comparisons=published, notices=[NOTICE])
    path.write_text(text, "utf-8")
    return path


def on_linear_40(page: Page) -> None:
    page.get_by_role("button", name="linear-40").click()
    see(page, "curves")


def test_charts_are_drawn_and_agents_switched(open_page: Open) -> None:
    page = open_page()
    assert page.title() == "A <study>: linear-20, linear-40"
    on_linear_40(page)
    lines = page.locator(DRAWN)
    assert lines.count() == 5
    top = page.locator("#curves .chart svg").inner_html()
    button = page.locator("#agents").get_by_role("button", name="malats", exact=True)
    assert button.get_attribute("aria-pressed") == "true"
    button.click()
    page.wait_for_function(f"document.querySelectorAll('{DRAWN}').length === 4")
    assert button.get_attribute("aria-pressed") == "false"
    assert page.locator("#agents-count").inner_text() == "4 of 5"
    assert page.locator("#curves .chart svg").inner_html() != top
    see(page, "final")
    page.wait_for_function(
        "!document.querySelector('#final .chart').textContent.includes('malats')"
    )
    page.get_by_role("button", name="None").click()
    page.wait_for_function(f"document.querySelectorAll('{DRAWN}').length === 0")
    page.get_by_role("button", name="All", exact=True).click()
    page.wait_for_function(f"document.querySelectorAll('{DRAWN}').length === 5")


@pytest.mark.slow
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

    assert column(1) == ["lints", "malats", "linucb", "twin", HOSTILE]
    head = table.locator("th", has_text="mean regret")
    head.get_by_role("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    head.get_by_role("button").click()
    assert head.get_attribute("aria-sort") == "descending"
    assert column(1)[0] == HOSTILE and column(1)[3:] == ["malats", "lints"]
    means = [float(v.replace(",", "")) for v in column(2)]
    assert means == sorted(means, reverse=True)
    more = table.get_by_role("button", name="Specification of lints")
    more.click()
    assert more.get_attribute("aria-expanded") == "true"
    assert "c0ffee" in table.locator("tr.spec:visible").inner_text()
    beside = page.locator("#published table")
    assert "126.3" in beside.inner_text()
    assert beside.locator(".badge").inner_text() in ("agrees", "differs", "too uncertain to tell")


@pytest.mark.slow
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
@pytest.mark.slow
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


@pytest.mark.slow
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
    assert page.locator("#agents-count").inner_text() == "4 of 5"
    head = page.locator("#numbers th button").first
    head.focus()
    page.keyboard.press("Enter")
    assert page.locator("#numbers th").first.get_attribute("aria-sort") == "ascending"


@pytest.mark.parametrize("testbed", ["linear-20", "linear-40"])
@pytest.mark.slow
def test_every_tooltip_names_the_agent_and_a_number(open_page: Open, testbed: str) -> None:
    """Curves, points and bars of all charts, in all variants that the buttons choose."""
    page = open_page()
    page.get_by_role("button", name=testbed, exact=True).click()
    told = 0
    for section in ("curves", "final", "sweeps", "published", "health", "compute"):
        if page.locator(f"#{section}").is_hidden():
            continue
        see(page, section)
        page.wait_for_function(
            f"[...document.querySelectorAll('#{section} .chart')].every((c) => c.dataset.drawn)"
        )
        said = tooltips(page, section)
        for button in page.locator(f"#{section} .toolbar button:not([aria-pressed=true])").all():
            before = page.locator(f"#{section} .chart").first.get_attribute("data-drawn")
            if button.is_visible() and button.inner_text() not in ("All bands", "Whole axis"):
                button.click()
                page.wait_for_function(
                    f"document.querySelector('#{section} .chart').dataset.drawn !== '{before}'"
                )
                said += tooltips(page, section)
        assert said, section
        told += len(said)
        for text in said:
            assert "undefined" not in text and "NaN" not in text, text
            assert any(sign.isdigit() for sign in text), text
            if section != "sweeps":
                assert text.startswith("agent"), text
                name = text.splitlines()[0].removeprefix("agent").strip()
                assert name and not name.startswith("null"), text
    assert told > 20


@pytest.mark.slow
def test_a_band_is_that_of_the_agent_that_is_brought_out(open_page: Open) -> None:
    page = open_page()
    on_linear_40(page)
    page.mouse.move(2, 2)
    page.wait_for_function(f"document.querySelectorAll('{BANDS}').length === 0")
    button = page.locator("#agents").get_by_role("button", name="lints", exact=True)
    button.hover()
    page.wait_for_function(f"document.querySelectorAll('{BANDS}').length === 1")
    page.mouse.move(2, 2)
    page.wait_for_function(f"document.querySelectorAll('{BANDS}').length === 0")
    # Pointing at a curve does the same, and a click keeps it.
    page.locator("#curves").evaluate("(e) => e.scrollIntoView({ behavior: 'instant' })")
    box = page.locator("#curves .chart svg").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 0.5 * box["width"], box["y"] + 0.7 * box["height"])
    page.wait_for_function(f"document.querySelectorAll('{BANDS}').length === 1")
    page.mouse.down()
    page.mouse.up()
    page.mouse.move(2, 2)
    page.wait_for_timeout(200)
    assert page.locator(BANDS).count() == 1
    page.get_by_role("button", name="All bands").click()
    page.wait_for_function(f"document.querySelectorAll('{BANDS}').length === 5")


@pytest.mark.slow
def test_names_at_line_ends_do_not_overlap_and_equal_curves_share_one(open_page: Open) -> None:
    page = open_page()
    on_linear_40(page)
    page.wait_for_function(
        "document.querySelector('#curves .chart').textContent.includes('linucb = twin')"
    )
    assert "= twin" in page.locator("#agents").inner_text()
    assert "linucb = twin on linear-40" in page.locator("#overview").inner_text()
    boxes = page.evaluate(
        "[...document.querySelectorAll('#curves .chart svg .role-mark.mark-text text')]"
        ".map((e) => e.getBoundingClientRect().toJSON())"
    )
    assert len(boxes) == 4
    middles = sorted(box["y"] + box["height"] / 2 for box in boxes)
    assert all(b - a > 11 for a, b in itertools.pairwise(middles))


@pytest.mark.slow
def test_an_agent_far_above_leaves_the_picture_and_is_marked(open_page: Open) -> None:
    page = open_page()
    on_linear_40(page)
    said = "document.querySelector('#{0} .chart').textContent"
    page.wait_for_function(f"{said.format('curves')}.includes('↑')")
    # The axis ends near the second worst, whose mean is about 120.
    upright = "#curves .chart svg [aria-label^='Y-axis'] .role-axis-label text"
    ticks = page.locator(upright).all_text_contents()
    assert max(float(text.replace(",", "")) for text in ticks) < 1000
    see(page, "final")
    page.wait_for_function(f"{said.format('final')}.includes('▸')")
    page.locator("#curves").get_by_role("button", name="Whole axis").click()
    page.wait_for_function(f"!{said.format('curves')}.includes('↑')")
    # Without the bad one, nobody leaves.
    page.locator("#curves").get_by_role("button", name="Whole axis").click()
    page.wait_for_function(f"{said.format('curves')}.includes('↑')")
    page.locator("#agents").get_by_role("button", name=HOSTILE, exact=True).click()
    page.wait_for_function(f"!{said.format('curves')}.includes('↑')")


@pytest.mark.slow
def test_what_was_left_out_is_said_at_the_top(open_page: Open) -> None:
    page = open_page()
    notice = page.locator(".left-out")
    assert notice.inner_text().strip() == NOTICE
    box, overview = notice.bounding_box(), page.locator("#overview").bounding_box()
    assert box is not None and overview is not None and box["y"] < overview["y"]


@pytest.mark.slow
def test_searching_filters_agents_testbeds_and_tables(open_page: Open) -> None:
    page = open_page()
    on_linear_40(page)
    search = page.get_by_role("searchbox")
    search.fill("MALA")
    page.wait_for_function(f"document.querySelectorAll('{DRAWN}').length === 1")
    assert page.locator("#agents button").all_inner_texts() == ["malats"]
    rows = page.locator("#numbers tr.row:visible")
    assert rows.count() == 1 and "malats" in rows.first.inner_text()
    search.fill("20")
    assert page.locator("#problems button:visible").all_inner_texts() == ["linear-20", "linear-40"]
    page.keyboard.press("Enter")
    assert page.locator("#problems [aria-pressed=true]").inner_text() == "linear-20"
    search.fill("nothing-like-it")
    assert "nothing-like-it" in page.locator("#search-said").inner_text()
    page.keyboard.press("Escape")
    assert page.locator("#search-said").inner_text() == ""
    assert page.locator("#problems button:visible").count() == 2
    page.get_by_role("button", name="linear-40").click()
    page.wait_for_function(f"document.querySelectorAll('{DRAWN}').length === 5")


@pytest.mark.slow
def test_every_chart_is_saved_as_svg_png_and_csv(open_page: Open) -> None:
    page = open_page()
    on_linear_40(page)
    figures = page.locator("figure").count()
    assert figures > 4
    for kind in ("SVG", "PNG", "CSV"):
        buttons = page.locator("figure").get_by_role("button", name=f"Save as {kind}")
        assert buttons.count() == figures
        with page.expect_download() as started:
            page.locator("#curves figure").get_by_role("button", name=f"Save as {kind}").click()
        assert (
            started.value.suggested_filename == f"Regret-along-the-run-on-linear-40.{kind.lower()}"
        )
        content = Path(started.value.path()).read_bytes()
        magic = {"SVG": b"<svg", "PNG": b"\x89PNG", "CSV": b"series,round,mean"}[kind]
        assert content.startswith(magic)
    rows = list(csv.DictReader(io.StringIO(content.decode("utf-8"))))
    assert {row["series"] for row in rows} == {"lints", "malats", "linucb", "twin", HOSTILE}
    assert all(float(row["low"]) <= float(row["mean"]) <= float(row["high"]) for row in rows)


@pytest.mark.slow
def test_all_numbers_are_whole_on_a_laptop_and_in_print(open_page: Open) -> None:
    page = open_page(width=1400)
    on_linear_40(page)
    wide = "(e) => [e.scrollWidth, e.clientWidth]"
    inside, room = page.locator("#numbers .scroll").evaluate(wide)
    assert inside <= room
    # A sheet of A4 with the usual margins.
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 718, "height": 1000})
    edges = page.evaluate(
        "[...document.querySelectorAll('main td, main th, main .chart svg')]"
        ".filter((e) => e.getClientRects().length).map((e) => e.getBoundingClientRect().right)"
    )
    assert max(edges) <= 718
    assert page.locator("#agents").is_visible() and not page.locator("#search").is_visible()


@pytest.mark.slow
def test_the_page_fits_a_phone(open_page: Open) -> None:
    page = open_page(width=390, height=844)
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    page.locator("#numbers").scroll_into_view_if_needed()
    # At the end of the page, too, all lists are within reach; one is open at a time.
    for box, inside in (
        ("agents", "#agents"),
        ("sections", "#sections"),
        ("problems", "#problems"),
    ):
        assert not page.locator(inside).is_visible()
        page.locator(f"#{box}-box summary").click()
        assert page.locator(inside).is_visible()
        assert page.locator("aside details[open]").count() == 1
    page.locator("#problems").get_by_role("button", name="linear-40").click()
    assert page.locator("aside details[open]").count() == 0
    page.locator("#sections-box summary").click()
    page.locator("#sections").get_by_role("link", name="Regret along the run").click()
    assert page.locator("aside details[open]").count() == 0
    see(page, "curves")
    box = page.locator("#curves .chart svg").bounding_box()
    assert box is not None
    assert 250 < box["width"] < 390
    page.get_by_role("button", name="Specification of lints").click()
    assert page.evaluate("document.documentElement.scrollWidth") == 390
