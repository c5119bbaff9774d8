"""Which published numbers belong to a set of results."""

import dataclasses

from made_up import as_published, data_of

from feelgood.report import page
from feelgood.report.charts.published import beside_published
from feelgood.report.matching import find_comparisons
from feelgood.report.published_comparisons import PublishedVerdict
from feelgood.report.rendering import render


def test_published_numbers_are_found_for_the_papers_settings_and_no_others() -> None:
    other = dataclasses.replace(as_published("lints", 10_000), settings={"rho": 7.0, "eta": 1.0})
    found = find_comparisons([as_published("linucb", 10_000), as_published("linucb", 100), other])
    assert {c.row.agent for c in found} == {"linucb"}
    main = [c for c in found if c.row.published.table == "main"]
    assert {(c.row.testbed, c.rounds) for c in main} == {("linear-20", 10_000)}
    short = find_comparisons([as_published("linucb", 100)])
    assert {c.verdict for c in short} == {PublishedVerdict.NOT_RUN}


def test_published_numbers_are_drawn_and_shown() -> None:
    result = as_published("linucb", 10_000)
    comparisons = find_comparisons([result])
    drawn = render(beside_published(comparisons), "svg").decode()
    assert "published" in drawn
    rows = data_of(page.build_page([result], comparisons=comparisons))["published"][0]
    assert rows[0]["published"] == 73.0
    assert rows[0]["verdict"] in ("agrees", "differs", "too uncertain to tell")
