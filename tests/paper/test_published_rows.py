"""The published numbers: all there, each with something to run or a reason."""

import csv
import dataclasses
from collections import Counter
from importlib.resources import files

import pytest

from feelgood.core.errors import FeelgoodError
from feelgood.core.lookup import preset_settings
from feelgood.core.policy import AGENTS
from feelgood.core.testbed import TESTBEDS
from feelgood.paper import published_rows
from feelgood.paper.published_numbers import all_published, published
from feelgood.paper.published_rows import PAPER_ROUNDS, TITLES, PublishedRow, missing, rows, to_row
from feelgood.paper.reproducing import plan_rows

ALL = [row for table in TITLES for row in rows(table)]
#: Rows that are there whatever data sets and networks this installation has.
SYNTHETIC = [row for row in ALL if not row.published.table.startswith("neural")]


def the_row(table: str, agent: str, **wanted: object) -> PublishedRow:
    (row,) = (
        r
        for r in rows(table)
        if r.published.agent == agent
        and all(getattr(r.published, name) == value for name, value in wanted.items())
    )
    return row


def test_all_545_numbers_ship_and_every_one_is_in_a_table() -> None:
    text = files("feelgood.paper").joinpath("published.csv").read_text()
    raw = list(csv.DictReader(text.splitlines()))
    assert len(raw) == len(all_published()) == len(ALL) == 545
    assert Counter(line["table"] for line in raw) == Counter(r.published.table for r in ALL)
    assert set(TITLES) == {line["table"] for line in raw}
    for line, number in zip(raw, all_published(), strict=True):
        assert (line["mean"], line["std"]) == (
            line["mean"] and str(number.mean),
            line["std"] and str(number.std),
        )


def test_filters() -> None:
    chosen = published(table="main", agent="lmcts", beta=1000)
    assert [p.mean for p in chosen] == [62.6, 129.1, 202.7]
    assert published(testbed="nowhere") == ()
    assert {p.metric for p in published(metric="simple_regret")} == {"simple_regret"}


def test_every_synthetic_row_can_be_run_as_it_is_described() -> None:
    """Agent and testbed exist, and the agent has every setting that the row gives."""
    for row in SYNTHETIC:
        check_that_it_can_be_run(row)


def check_that_it_can_be_run(row: PublishedRow) -> None:
    assert missing(row) is None
    testbed = TESTBEDS[row.testbed].build()
    assert row.rounds == testbed.rounds
    known = AGENTS[row.agent].settings
    assert set(row.settings) <= set(known)
    preset = preset_settings(row.preset, row.agent, row.testbed, testbed.spec, row.rounds)
    AGENTS[row.agent].resolve({k: v for k, v in preset.items() if k in known} | {**row.settings})
    if row.published.delta is not None:
        assert float(testbed.delta) == pytest.approx(row.published.delta)  # type: ignore[attr-defined]


def test_rows_that_cannot_be_run_say_what_is_missing() -> None:
    number = published(table="neural-cumulative")[0]
    row = to_row(number)
    there = row.testbed in TESTBEDS and row.agent in AGENTS
    assert (missing(row) is None) == there
    unknown = dataclasses.replace(row, agent="no-such-agent")
    assert "is not available yet" in (missing(unknown) or "")


def test_reasons_are_sentences_without_their_stop() -> None:
    for row in ALL:
        reason = row.remark
        assert reason is None or (len(reason) > 20 and not reason.endswith("."))


@pytest.mark.parametrize(
    ("table", "agent", "where", "word"),
    [
        ("wheel", "lmcts", {"delta": 0.5}, "fixed outer arm"),
        ("main", "svrglmcts", {"testbed": "linear-40"}, "mean-scaled"),
        ("main", "lmcts", {"testbed": "logistic-20"}, "no reading"),
        ("main", "epsgreedy", {"testbed": "logistic-20"}, "impossible"),
        ("damping", "ulmcts", {}, "other noise"),
        ("lambda-linear-20-b1", "fgmalats", {"lam": 0.01}, "accepts nothing"),
        ("precondition-linear", "psfglmcts", {"lam": 0.1}, "copying slip"),
        ("other", "uniform", {"testbed": "linear-20"}, "half a unit"),
        ("neural-cumulative", "neural-fglmcts", {"testbed": "adult"}, "have no bonus"),
        ("neuralts-cumulative", "sfg-neural-ts", {"testbed": "adult"}, "on the played arm alone"),
        ("neural-cumulative", "neural-lmcts", {"testbed": "jester"}, "reward scales"),
        ("neuralts-simple", "fg-neural-ts", {"testbed": "cifar10"}, "839.6"),
    ],
)
def test_numbers_that_rest_on_a_slip_are_marked(
    table: str, agent: str, where: dict[str, object], word: str
) -> None:
    assert word in (the_row(table, agent, **where).remark or "")


def test_what_a_row_runs() -> None:
    tabular = the_row("main", "epsgreedy", testbed="linear-20")
    assert tabular.agent == "epsgreedy-tabular"
    ablated = the_row("lambda-ablation", "fglmcts", lam=0.0)
    assert ablated.settings == {"lam": 0.0}
    damped = the_row("damping", "ufglmcts")
    assert damped.settings == {"lam": 0.01, "gamma": 0.1}
    assert damped.label == "ufglmcts λ=0.01 γ=0.1"
    main_1 = the_row("main", "lmcts", beta=1)
    assert (main_1.preset, main_1.label) == ("paper-beta1", "lmcts β=1")
    assert the_row("lambda-linear-20-b1", "fglmcts", lam=0.5).preset == "paper-beta1-appendix"
    assert the_row("lambda-linear-40-b1000", "pfglmcts", lam=0.5).preset == "paper-equal-beta"
    assert the_row("wheel", "lmcts", delta=0.1).rounds == PAPER_ROUNDS["wheel"] == 5_000
    assert the_row("neuralts-simple", "neural-ts", testbed="adult").metric == "simple_regret"


def test_temperatures_of_the_presets() -> None:
    """1/β as docs/reproducing.md has it: value · d · ln T, or a number of its own."""
    import math

    spec, unit = TESTBEDS["linear-20"].build().spec, 20 * math.log(10_000)
    expected = {
        ("paper", "lmcts"): 1e-3 * unit,
        ("paper", "plmcts"): 1e-2 * unit,
        ("paper", "phmcts"): 1.0,
        ("paper-beta1", "lmcts"): 1.0,
        ("paper-beta1", "plmcts"): 1e-2 * unit,
        ("paper-beta1-appendix", "lmcts"): unit,
        ("paper-beta1-appendix", "pfglmcts"): unit,
        ("paper-beta1-appendix", "hmcts"): 1.0,
        ("paper-equal-beta", "plmcts"): 1e-3 * unit,
        ("paper-equal-beta", "malats"): 1e-3 * unit,
    }
    for (preset, agent), temperature in expected.items():
        settings = preset_settings(preset, agent, "linear-20", spec, 10_000)
        assert 1.0 / settings["beta"] == pytest.approx(temperature), (preset, agent)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("mian",), "did you mean 'main'"),
        (("main", ["linear-21"]), "no testbed 'linear-21': did you mean 'linear-20'"),
        (("main", None, ["lmct"]), "no agent 'lmct': did you mean"),
    ],
)
def test_unknown_names_are_refused(arguments: tuple[object, ...], message: str) -> None:
    with pytest.raises(FeelgoodError, match=message):
        rows(*arguments)  # type: ignore[arg-type]


def test_some_testbeds_and_agents() -> None:
    chosen = rows("main", ["linear-20"], ["epsgreedy", "lmcts"])
    assert [r.label for r in chosen] == ["epsgreedy-tabular", "lmcts", "lmcts β=1"]
    assert rows("main", agents=["epsgreedy-tabular"]) == rows("main", agents=["epsgreedy"])


def test_a_table_of_the_paper_is_one_line_and_its_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line in `tables.csv` and the numbers are all: no code knows a table by its name."""
    line = {"table": "new", "preset": "paper", "preset_at_beta_1": "", "title": "A new table"}
    number = dataclasses.replace(published(table="main", agent="lmcts")[0], table="new")
    monkeypatch.setitem(published_rows._tables(), "new", line)
    monkeypatch.setitem(TITLES, "new", line["title"])
    monkeypatch.setattr(published_rows, "all_published", lambda: (*all_published(), number))
    (row,) = rows("new")
    assert (row.agent, row.preset, row.testbed) == ("lmcts", "paper", "linear-20")
    (cells,) = plan_rows([row], seeds=1, rounds=10).cells
    assert [cell.agent for cell in cells] == ["lmcts"]
