"""Charts, the page and the commands that write them."""

import dataclasses
import json
import re
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
import pytest
from made_up import made_up, main_table, swept

import feelgood
from feelgood import FeelgoodError, cli
from feelgood.engine.results import AgentResult
from feelgood.report import page
from feelgood.report.chart_kinds import sections
from feelgood.report.charts.compute import regret_against_compute
from feelgood.report.charts.curves import curve_rows, regret_curves
from feelgood.report.charts.final import final_intervals
from feelgood.report.charts.health import sampler_health
from feelgood.report.charts.published import beside_published
from feelgood.report.charts.sweep import sweep_charts
from feelgood.report.matching import find_comparisons
from feelgood.report.packing import pack
from feelgood.report.published_comparisons import PublishedVerdict
from feelgood.report.rendering import render, save_chart, to_spec
from feelgood.report.series import find_sweeps, name_series, ordered_labels
from feelgood.report.theme import INKS, PALETTES
from feelgood.studies.planning import Cell, plan_cells
from feelgood.studies.store import Store

HOSTILE = "</script><img src=x onerror=alert(1)>\u2028<!--"


def few() -> list[AgentResult]:
    return [
        made_up("malats", diverged=2),
        made_up("lmcts", level=60.0),
        made_up("lints", level=50.0),
        made_up("malats", "linear-40"),
    ]


# Names and sweeps ----------------------------------------------------------------------------


def test_labels_say_what_differs_and_only_that() -> None:
    results = [
        made_up("linucb", settings={"alpha": 0.1, "rho": 1.0}),
        made_up("linucb", settings={"alpha": 1.0, "rho": 1.0}),
        made_up("lints", settings={"rho": 1.0}),
        # Another value on another testbed is no other series.
        made_up("lints", "linear-40", settings={"rho": 2.0}),
        made_up("lints", "linear-40", settings={"rho": 2.0}, rounds=50),
    ]
    series = name_series(results)
    assert [s.label for s in series] == [
        "linucb α=0.1",
        "linucb α=1",
        "lints",
        "lints",
        "lints",
    ]
    assert [s.problem for s in series][2:] == [
        "linear-20",
        "linear-40 rounds=1000",
        "linear-40 rounds=50",
    ]


def test_equal_results_have_different_labels() -> None:
    labels = [s.label for s in name_series([made_up("lints"), made_up("lints")])]
    assert labels == ["lints", "lints #2"]


def test_labels_are_ordered_by_regret_and_broken_ones_come_last() -> None:
    results = [made_up("a", diverged=6), made_up("b", level=90.0), made_up("c", level=10.0)]
    assert ordered_labels(name_series(results)) == ["c", "b", "a"]


def test_sweeps_are_found_everything_else_being_equal() -> None:
    found = find_sweeps(name_series(swept()))
    assert [(s.agent, s.axes, len(s.members)) for s in found] == [
        ("fglmcts", ("lam", "beta"), 6),
        ("pfglmcts", ("lam",), 3),
        ("fghmcts", ("lam",), 3),
    ]


def test_settings_that_change_together_are_no_sweep() -> None:
    together = [made_up("lmcts", settings={"beta": b, "step": 1 / b}) for b in (1.0, 2.0, 4.0)]
    assert find_sweeps(name_series(together)) == []


# Charts --------------------------------------------------------------------------------------

CHARTS = {
    "curves": lambda: regret_curves(few()),
    "curves, logarithmic": lambda: regret_curves(few(), log_x=True, log_y=True, band="std"),
    "final": lambda: final_intervals(few()),
    "sweeps": lambda: sweep_charts(swept()),
    "health": lambda: sampler_health(few()),
    "compute": lambda: regret_against_compute(few()),
}


@pytest.mark.parametrize("name", CHARTS)
def test_charts_are_valid_vega_lite_and_can_be_drawn(name: str) -> None:
    chart = CHARTS[name]()
    spec = to_spec(chart)
    alt.Chart.from_dict(spec, validate=True)
    drawn = render(chart, "svg").decode()
    assert drawn.startswith("<svg")
    assert drawn.count("<path") > 10
    assert "NaN" not in drawn


def test_pictures_have_the_formats_that_their_names_say(tmp_path: Path) -> None:
    chart = final_intervals([made_up("lints")])
    for suffix, magic in ((".png", b"\x89PNG\r\n"), (".svg", b"<svg"), (".pdf", b"%PDF-")):
        file = tmp_path / f"figure{suffix}"
        save_chart(chart, file)
        assert file.read_bytes().startswith(magic)
    with pytest.raises(FeelgoodError, match="'gif'"):
        save_chart(chart, tmp_path / "figure.gif")


def test_curves_hold_the_mean_and_the_quantiles_of_the_living_chains() -> None:
    result = made_up("malats", diverged=2, seeds=20)
    (series,) = name_series([result])
    last = curve_rows(series, 50, "quantile")[-1]
    living = result.curve[2:, -1]
    assert last["round"] == 1_000
    assert last["seeds"] == 18
    assert last["mean"] == pytest.approx(living.mean(), rel=1e-4)
    assert last["low"] == pytest.approx(np.quantile(living, 0.1), rel=1e-4)
    assert last["high"] == pytest.approx(np.quantile(living, 0.9), rel=1e-4)
    std = curve_rows(series, 50, "std")[-1]
    assert std["high"] == pytest.approx(living.mean() + living.std(ddof=1), rel=1e-4)


def test_one_seed_and_chains_that_all_diverged_are_drawn_as_far_as_they_go() -> None:
    results = [made_up("lmcts", seeds=1), made_up("malats", diverged=6)]
    for draw in (regret_curves, final_intervals, sampler_health):
        assert render(draw(results), "svg")
    assert render(sweep_charts([made_up("a", seeds=1, settings={"k": k}) for k in (1, 2)]), "svg")


def test_a_real_run_can_be_drawn_and_reported() -> None:
    result = feelgood.run("linear-20", ["uniform"], rounds=30, seeds=2)
    assert render(regret_curves(list(result)), "svg")
    assert "uniform" in page.build_page(list(result))


def _luminances(colour: str) -> tuple[np.ndarray, float]:
    """Linear RGB and relative luminance of a colour (WCAG 2.1)."""
    values = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)
    return linear, float(linear @ [0.2126, 0.7152, 0.0722])


#: Full colour blindness in linear RGB: Machado, Oliveira and Fernandes, 2009.
BLINDNESS = {
    "none": np.eye(3),
    "protan": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    "deutan": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
    "tritan": [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]],
}


def _lab(linear: np.ndarray) -> np.ndarray:
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    t = xyz @ np.clip(linear, 0, 1) / [0.9505, 1.0, 1.089]
    f = np.where(t > 0.008856, np.cbrt(t), 7.787 * t + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("theme", PALETTES)
@pytest.mark.parametrize("kind", BLINDNESS)
def test_colours_stay_apart_for_colour_blind_readers(theme: str, kind: str) -> None:
    seen = [_lab(np.array(BLINDNESS[kind]) @ _luminances(c)[0]) for c in PALETTES[theme]]
    apart = [float(np.linalg.norm(a - b)) for i, a in enumerate(seen) for b in seen[:i]]
    assert min(apart) > 18.0  # 2.3 is just noticeable side by side


@pytest.mark.parametrize("theme", PALETTES)
def test_colours_and_text_stand_out_from_the_paper(theme: str) -> None:
    def contrast(colour: str) -> float:
        ends = sorted((_luminances(colour)[1], _luminances(INKS[theme]["paper"])[1]))
        return (ends[1] + 0.05) / (ends[0] + 0.05)

    assert min(map(contrast, PALETTES[theme])) > 3.0  # WCAG: graphics
    assert contrast(INKS[theme]["soft"]) > 4.5  # WCAG: text


# The page ------------------------------------------------------------------------------------


def data_of(text: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    data = json.loads(found[1])
    assert isinstance(data, dict)
    return data


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


# Beside the published ------------------------------------------------------------------------


def as_published(agent: str, rounds: int, **more: Any) -> AgentResult:
    """A made-up result with exactly the settings of the paper's preset."""
    more = {"preset": "paper", **more}
    (cell,) = plan_cells("linear-20", agent, rounds=rounds, seeds=5, **more)
    made = made_up(agent, rounds=rounds, seeds=5, settings=cell.settings)
    return dataclasses.replace(made, testbed_settings=cell.testbed_settings)


def test_published_numbers_are_found_for_the_papers_settings_and_no_others() -> None:
    other = dataclasses.replace(as_published("lints", 10_000), settings={"rho": 7.0, "eta": 1.0})
    found = find_comparisons([as_published("linucb", 10_000), as_published("linucb", 100), other])
    assert {c.row.agent for c in found} == {"linucb"}
    main = [c for c in found if c.row.published.table == "main"]
    assert {(c.row.testbed, c.rounds) for c in main} == {("linear-20", 10_000)}
    short = find_comparisons([as_published("linucb", 100)])
    assert {c.verdict for c in short} == {PublishedVerdict.NOT_COMPARABLE}


def test_published_numbers_are_drawn_and_shown() -> None:
    result = as_published("linucb", 10_000)
    comparisons = find_comparisons([result])
    drawn = render(beside_published(comparisons), "svg").decode()
    assert "published" in drawn
    rows = data_of(page.build_page([result], comparisons=comparisons))["published"][0]
    assert rows[0]["published"] == 73.0
    assert rows[0]["verdict"] in ("agrees", "differs")


# Commands ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results") / "study"
    written = Store(folder)
    for agent in ("linucb", "lints"):
        (cell,) = plan_cells("linear-20", agent, preset="paper", rounds=200, seeds=5)
        written.put(cell, as_published(agent, 200))
    return folder


def command(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    monkeypatch.setattr(sys, "argv", ["feelgood", *map(str, arguments)])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert isinstance(stop.value.code, int)
    return stop.value.code


def test_report_writes_a_page_and_opens_it(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    file = tmp_path / "page.html"
    assert command(monkeypatch, "report", store, "--out", file, "--open") == 0
    assert opened == [file.as_uri()]
    data = data_of(file.read_text(encoding="utf-8"))
    assert data["labels"]
    assert len(data["published"][0]) > 0
    assert command(monkeypatch, "report", store, "--out", file) == 2
    assert command(monkeypatch, "report", store, "--out", file, "--force") == 0
    assert command(monkeypatch, "report", store) == 0
    assert (store / "report.html").exists()
    assert len(Store(store).results()) == 2


@pytest.mark.parametrize("chart", ["curves", "final", "published"])
def test_plot_writes_a_picture(
    chart: str, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "figure.svg"
    assert command(monkeypatch, "plot", store, "--chart", chart, "--out", file) == 0
    drawn = file.read_text()
    assert "linucb" in drawn
    assert "lints" in drawn
    arguments = ("--agents", "lints", "--out", file, "--force")
    assert command(monkeypatch, "plot", store, "--chart", chart, *arguments) == 0
    assert "linucb" not in file.read_text()


BAD = {
    ("report", "{tmp}/nothing"): "is not a folder",
    ("report", "{tmp}"): "is not a results store",
    ("report", "{empty}"): "has no finished results",
    ("report", "{store}", "--out", "{tmp}"): "is a folder",
    ("report", "{store}", "--out", "/dev/null/page.html"): "cannot write",
    ("plot", "{store}", "--out", "{tmp}/x.gif"): "no known suffix",
    ("plot", "{store}", "--out", "{tmp}/x"): "no known suffix",
    ("plot", "{store}", "--chart", "curvs", "--out", "{tmp}/x.png"): "did you mean 'curves'",
    ("plot", "{store}", "--band", "stt", "--out", "{tmp}/x.png"): "did you mean 'std'",
    ("plot", "{store}", "--agents", "linucv", "--out", "{tmp}/x.png"): "did you mean 'linucb'",
    ("plot", "{store}", "--testbed", "linear-21", "--out", "{tmp}/x.png"): "'linear-20'",
    ("plot", "{store}", "--chart", "sweep", "--out", "{tmp}/x.png"): "no setting is swept",
    ("plot", "{store}", "--chart", "health", "--out", "{tmp}/x.png"): "has a sampler",
    ("plot", "{store}", "--chart", "compute", "--out", "{tmp}/x.png"): "no gradients are recorded",
}


@pytest.mark.parametrize("arguments", BAD, ids=lambda a: " ".join(a[:1] + a[2:]))
def test_bad_input_is_one_sentence(
    arguments: tuple[str, ...],
    store: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    Store(tmp_path / "empty")
    places = {"store": store, "tmp": tmp_path, "empty": tmp_path / "empty"}
    assert command(monkeypatch, *(a.format(**places) for a in arguments)) == 2
    said = capsys.readouterr().err
    assert said.startswith("feelgood: ")
    assert BAD[arguments] in said
    assert said.strip().count("\n") == 0
    assert not (tmp_path / "x.png").exists()


def test_a_measure_that_nobody_recorded_is_refused() -> None:
    with pytest.raises(FeelgoodError, match="did you mean 'acceptance'"):
        sampler_health(few(), measure="acceptence")


def test_the_pages_files_are_in_the_package() -> None:
    folder = Path(page.__file__).parent / "assets"
    assert {"page.html", "page.css", *page.SCRIPTS} == {p.name for p in folder.iterdir()}


@pytest.mark.slow
def test_a_report_of_2000_series_takes_less_than_20_seconds(tmp_path: Path) -> None:
    """From the store to the file: 20 agents × 25 weights × 4 testbeds.

    Measured are the command's own seconds, for the machine may be busy with other things, in a
    process of its own, for here all shapes are checked.
    """
    store = Store(tmp_path / "store")
    agents = [f"agent{i}" for i in range(20)]
    for testbed in ("linear-20", "linear-40", "logistic-20", "wheel-0.5"):
        for i, agent in enumerate(agents):
            for k in range(25):
                settings = {"lam": 0.1 * k, "beta": 1.0}
                level = 40.0 + 9 * i + k
                result = made_up(agent, testbed, level=level, rounds=10_000, settings=settings)
                cell = Cell(testbed, {"arms": 5}, agent, settings, 10_000, result.seeds)
                store.put(cell, result)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    arguments = ["report", str(tmp_path / "store")]
    subprocess.run([sys.executable, "-m", "feelgood", *arguments], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    taken = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    text = (tmp_path / "store" / "report.html").read_text(encoding="utf-8")
    assert sum(map(len, data_of(text)["results"])) == 2000
    assert len(text) < 15e6
    assert taken < 20.0, f"{taken:.1f} s"
