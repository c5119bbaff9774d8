"""The documentation site: it is whole, it opens without a network, and no link is dead.

A quick test builds a part of it; `make test-all` builds it whole, strictly, and opens every page
in a browser at two widths, light and dark.
"""

import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from test_readme import sentences

import feelgood

pytest.importorskip("mkdocs", reason="mkdocs-material is not installed")
ROOT = Path(__file__).resolve().parents[1]


def build(target: Path, config: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-f", str(config)]
    done = subprocess.run(
        [*command, "-d", str(target)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def settings() -> dict[str, Any]:
    from mkdocs.utils.yaml import yaml_load

    with (ROOT / "mkdocs.yml").open(encoding="utf-8") as file:
        return dict(yaml_load(file))


def pages_of(nav: Any) -> Iterator[str]:
    """The pages that a navigation names."""
    if isinstance(nav, str):
        yield nav
    for part in nav.values() if isinstance(nav, dict) else nav if isinstance(nav, list) else ():
        yield from pages_of(part)


def test_the_navigation_has_every_page_once() -> None:
    from handbook.places import PAGES

    listed = list(pages_of(settings()["nav"]))
    assert len(listed) == len(set(listed))
    written = {p.relative_to(ROOT / "docs").as_posix() for p in (ROOT / "docs").rglob("*.md")}
    made = {p for p in listed if p.startswith("reference/")} | {"challenge-board.md"}
    assert set(listed) == written | set(PAGES.values()) | made


def test_every_public_name_has_its_section() -> None:
    from handbook import reference

    pages = {place: reference.names_page(t, rooms) for place, t, rooms in reference.GROUPS}
    text = "\n".join(pages.values())
    for name in feelgood.__all__:
        assert len(re.findall(rf"^## {name}$", text, re.MULTILINE)) == 1, name
        thing = getattr(feelgood, name)
        if inspect.isclass(thing):
            methods = [m for m, v in vars(thing).items() if inspect.isfunction(v) and m[0] != "_"]
            for method in methods:
                assert f"### {name}.{method}\n" in text
    assert ">>>" not in re.sub(r"```pycon.*?```", "", text, flags=re.DOTALL)


def test_every_agent_and_testbed_has_its_section() -> None:
    from handbook.entries import entry_sections

    for registry in (feelgood.AGENTS, feelgood.TESTBEDS):
        text = entry_sections(registry)
        for name in registry:
            (part,) = re.findall(rf"^#+ {re.escape(name)}$(.*?)(?=^#|\Z)", text, re.M | re.S)
            assert f"feelgood run {name}" in part or f" {name}" in part
            for key in registry[name].settings:
                assert f"| `{key}` |" in part, (name, key)


def test_links_are_moved_and_code_is_left_alone() -> None:
    from handbook.places import for_the_site, links_of

    text = "[a](../CONTRIBUTING.md#x) `[b](c.md)` [`d`](studies.md) [e](https://x.org/f)\n"
    fence = "```python title=own.py\n[g](h.md)\n```\n"
    assert for_the_site(text + fence, "studies.md") == (
        "[a](project/contributing.md#x) `[b](c.md)` [`d`](studies.md) [e](https://x.org/f)\n"
        '```python title="own.py"\n[g](h.md)\n```\n'
    )
    assert links_of(text + fence) == ["../CONTRIBUTING.md", "studies.md"]
    there = "[a](docs/agents.md) [b](bench/speed.py)"
    moved = for_the_site(there, "project/contributing.md")
    assert moved == "[a](../agents.md) [b](files/bench/speed.py)"


def test_figures_are_saved_by_the_page_that_shows_them() -> None:
    from handbook.figures import PAGES, snippets_of

    for page in PAGES:
        code = "".join(source for _, source in snippets_of(page))
        text = (ROOT / "docs" / page).read_text(encoding="utf-8")
        shown = re.findall(r"\]\(figures/(\S+\.svg)\)", text)
        assert shown
        assert [name for name in shown if name not in code] == []


def long_sentences(text: str) -> list[str]:
    text = re.sub(r"^(?: {4}|\t).*$", "", text, flags=re.MULTILINE)
    return [sentence for sentence in sentences(text) if len(sentence.split()) > 30]


def test_no_page_has_a_sentence_above_30_words() -> None:
    from handbook.places import PAGES

    pages = [*(ROOT / "docs").rglob("*.md"), *(ROOT / path for path in PAGES)]
    texts = {page: page.read_text(encoding="utf-8") for page in sorted(pages)}
    found = {page.name: long for page, text in texts.items() if (long := long_sentences(text))}
    assert not found


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of packages that adapters import
def test_no_page_of_the_reference_has_a_sentence_above_30_words() -> None:
    from handbook.reference import reference_pages

    pages = reference_pages()
    assert len(pages) > 5
    assert not {page: long for page, text in pages.items() if (long := long_sentences(text))}


def headings(text: str) -> set[str]:
    """The places of a page that links may name."""
    from pymdownx.slugs import slugify

    text = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    make = slugify(case="lower")
    return {make(h.replace("`", ""), "-") for h in re.findall(r"^#+ (.+)$", text, re.MULTILINE)}


def test_links_to_a_place_within_a_page_lead_there() -> None:
    for page in (ROOT / "docs").rglob("*.md"):
        text = page.read_text(encoding="utf-8")
        for path, place in re.findall(r"\]\(([^)#\s]*)#([^)\s]+)\)", text):
            if "://" not in path:
                there = (page.parent / path) if path else page
                assert place in headings(there.read_text(encoding="utf-8")), (page.name, place)


def html_of(site: Path, page: str) -> str:
    return (site / page).with_suffix(".html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The whole site."""
    target = tmp_path_factory.mktemp("site")
    build(target, ROOT / "mkdocs.yml")
    return target


def test_the_whole_site_is_built_and_asks_for_nothing_outside(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 35
    for page in pages:
        html = page.read_text(encoding="utf-8")
        wanted = re.findall(r'<(?:script|img|iframe|source)[^>]* src="(https?://[^"]+)"', html)
        wanted += re.findall(
            r'<link[^>]* rel="(?:stylesheet|preload)"[^>]* href="(http[^"]+)', html
        )
        assert wanted == [], page
    assert '<span class="filename">' in html_of(site, "adding-an-agent.md")
    assert "feelgood.run" in html_of(site, "reference/runs.md")


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1400, 400])
def test_every_page_fits_the_screen(site: Path, browser: Any, width: int, scheme: str) -> None:
    """Nothing is wider than the screen, nothing is asked for outside, no script fails."""
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page = context.new_page()
    said: list[str] = []
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda r: None if r.url.startswith("file:") else said.append(r.url))
    pages = [file for file in sorted(site.rglob("*.html")) if file.name != "404.html"]
    for file in pages:  # a server alone shows 404.html
        page.goto(file.as_uri(), wait_until="domcontentloaded")
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= width, (file.name, wide)
        drawn = page.evaluate("document.body.getAttribute('data-md-color-scheme')")
        plain = file.name == "pairs.html"  # not of the theme: it follows the browser by itself
        assert plain or drawn == ("slate" if scheme == "dark" else "default")
    assert said == []
    context.close()


@pytest.mark.slow
def test_the_search_works_from_a_folder(site: Path, browser: Any) -> None:
    context = browser.new_context(viewport={"width": 1400, "height": 900}, offline=True)
    page = context.new_page()
    page.goto((site / "index.html").as_uri())
    page.locator("input.md-search__input").click()
    page.get_by_text("Type to start searching").wait_for()  # the index is read
    page.locator("input.md-search__input").press_sequentially("propensities")
    page.locator(".md-search-result__item").first.wait_for()
    assert "propensities" in page.locator(".md-search-result__list").inner_text().lower()
    context.close()
