"""The page: complete, safe, small, and of the right numbers."""

import dataclasses
import json
import re
from typing import Any

import altair as alt
import pytest
from made_up import HOSTILE, as_published, data_of, few, made_up, main_table, swept

from feelgood.engine.results import AgentResult
from feelgood.report import page
from feelgood.report.chart_kinds import sections
from feelgood.report.matching import find_comparisons
from feelgood.report.packing import pack


@pytest.mark.slow
def test_the_main_table_with_100_seeds_is_under_5_mb() -> None:
    text = page.build_page(main_table(seeds=100), title="main")
    size = len(text.encode())
    assert size < 5_000_000
    assert len(data_of(text)["charts"]) == 4 * len(("curves", "final", "health", "compute"))


def test_more_results_get_coarser_curves(monkeypatch: pytest.MonkeyPatch) -> None:
    few_points = page.page_data(few())
    monkeypatch.setattr(page, "POINT_BUDGET", 1_000)
    many = page.page_data([made_up("lints", settings={"rho": 0.01 * i}) for i in range(20)])

    def points(data: dict[str, Any], series: int) -> float:
        tables = [t["curves"] for t in data["shared"].values()]
        return sum(t["length"] for t in tables) / series

    assert points(few_points, 4) > 100
    assert 30 < points(many, 20) <= 50


def test_what_the_page_draws_is_valid_vega_lite() -> None:
    """The page does not check its charts itself: that would take most of its time."""
    results = [*swept()[:6], made_up("malats"), as_published("linucb", 10_000)]
    results += [made_up("pfglmcts", settings={"lam": lam}) for lam in (0.0, 0.1)]
    data = page.page_data(results, find_comparisons(results))
    # Other variants differ in names of fields and in numbers.
    specs = {(c["section"], c["title"]): c["variants"][-1][1] for c in data["charts"]}
    assert {section for section, _ in specs} == {s.id for s in sections()} - {
        "posterior",
        "draws",
    }
    for spec in specs.values():
        alt.Root.validate(spec)


@pytest.mark.slow
def test_the_title_names_the_testbeds_that_are_shown() -> None:
    def title(name: str, *testbeds: str) -> str:
        found = re.search("<title>(.*?)</title>", page.build_page(list(map(some, testbeds)), name))
        assert found is not None
        return found[1]

    def some(testbed: str) -> AgentResult:
        return made_up("lints", testbed, rounds=20, seeds=2)

    assert title("All of them", "linear-20") == "All of them: linear-20"
    assert title("Posteriors on linear-20", "linear-20") == "Posteriors on linear-20"
    many = [f"t{i}" for i in range(7)]
    assert title("Main", *many) == "Main: t0, t1, t2, t3 and 3 more"


def test_the_same_agent_has_the_same_name_everywhere_and_the_papers_beta() -> None:
    hot, cold = (
        as_published("lmcts", 10_000, preset=preset) for preset in ("paper-beta1", "paper")
    )
    results = [hot, cold, as_published("linucb", 10_000)]
    data = page.page_data(results, find_comparisons(results))
    names = {"lmcts β=1", "lmcts β=10³", "linucb"}
    assert set(data["labels"]) == set(data["problems"][0]["labels"]) == names
    assert {row["label"] for row in data["results"][0]} == names
    shown = {row["label"].split(" (")[0] for row in data["published"][0]}
    assert shown == names
    for table in data["shared"]["0"].values():
        assert set(table["columns"][0]["words"]) <= names


def test_agents_with_one_curve_are_found() -> None:
    a = made_up("a", rounds=50)
    results = [a, dataclasses.replace(a, agent="b"), made_up("c", rounds=50)]
    data = page.page_data(results)
    assert data["problems"][0]["same"] == [["a", "b"]]
    assert any(text.startswith("a = b on linear-20: ") for text in data["overview"]["warnings"])


def test_notices_stand_at_the_top_as_text() -> None:
    text = page.build_page([made_up("a", rounds=20, seeds=2)], notices=[f"left out: {HOSTILE}"])
    assert text.count("</script>") == 3
    assert "onerror=alert(1)>" not in text
    assert "<li>left out: &lt;/script&gt;" in text
    assert text.index("left out: ") < text.index('id="content" tabindex')
    assert 'class="notice left-out"' not in page.build_page([made_up("a", rounds=20, seeds=2)])


def test_names_from_files_cannot_leave_their_place() -> None:
    result = made_up(
        HOSTILE,
        HOSTILE,
        settings={HOSTILE: HOSTILE},
        provenance={"commit": HOSTILE, "parts": [{"device": HOSTILE}]},
    )
    text = page.build_page([result, made_up("__proto__", HOSTILE)], title=HOSTILE + "@@data@@")
    assert "onerror=alert(1)>" not in text
    assert text.count("</script>") == 3
    data = data_of(text)
    assert HOSTILE in data["labels"]
    assert data["problems"][0]["name"] == HOSTILE
    (row,) = (r for r in data["results"][0] if r["label"] == HOSTILE)
    assert [HOSTILE, HOSTILE] in row["settings"]


def test_json_in_a_script_survives_lone_surrogates() -> None:
    text = page.to_script_json({"a": "\ud800<b>"})
    text.encode()
    assert json.loads(text) == {"a": "\ud800<b>"}


def test_the_page_refers_to_nothing_outside() -> None:
    text = page.build_page(few())
    markup = re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL)
    assert re.findall(r"""(?:src|href)=["']?([^"'>]*)""", markup) == ["#content"]
    assert "url(" not in markup
    assert "@import" not in markup


def test_the_page_says_what_diverged_and_who_wins() -> None:
    data = data_of(page.build_page(few()))
    assert dict(data["overview"]["facts"])["diverged chains"] == "2"
    assert data["overview"]["warnings"][0].startswith("malats on linear-20: 2 of 6 chains diverged")
    verdicts = dict(data["overview"]["verdicts"])
    assert "malats" not in verdicts["linear-20"]
    assert verdicts["linear-40"] == "only malats was run."


def test_packed_tables_are_the_rows() -> None:
    rows = [
        {"s": "a", "x": 1.0, "y": None},
        {"s": "b", "x": 2.5, "y": 3},
        {"s": "a", "x": 0, "y": 1},
    ]
    packed = pack(rows)
    columns = [
        [c["words"][i] for i in c["index"]] if isinstance(c, dict) else c for c in packed["columns"]
    ]
    back = [dict(zip(packed["fields"], row, strict=True)) for row in zip(*columns, strict=True)]
    assert back == rows
