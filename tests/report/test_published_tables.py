"""Ours beside the published: verdicts, reasons and what the renderings escape."""

import csv
import dataclasses
import io
import re

import numpy as np
import pytest
from made_results import result
from rich.console import Console

from feelgood.core.errors import FeelgoodError
from feelgood.engine.results import AgentResult
from feelgood.paper.published_rows import PublishedRow, rows
from feelgood.report.latex import escape_latex
from feelgood.report.published_comparisons import (
    PublishedComparison,
    PublishedVerdict,
    caption,
    compare_row,
    compare_rows,
    counts,
)
from feelgood.report.published_tables import CSV_COLUMNS, to_csv, to_latex, to_markdown, to_rich

MAIN = {r.label: r for r in rows("main", ["linear-20"])}
LMCTS = MAIN["lmcts"]


def ours(
    row: PublishedRow, mean: float, std: float, n: int = 10, rounds: int = 10_000
) -> AgentResult:
    """A result with this mean and sample standard deviation."""
    shape = np.linspace(-1.0, 1.0, n)
    values = mean + std * shape / np.std(shape, ddof=1)
    return result(row.agent, values, testbed=row.testbed, rounds=rounds)


def test_verdicts() -> None:
    same = compare_row(LMCTS, ours(LMCTS, 62.0, 10.0))
    assert (same.verdict, same.reason) == (PublishedVerdict.AGREES, "")
    assert same.test is not None
    assert same.test.p > 0.8
    other = compare_row(LMCTS, ours(LMCTS, 90.0, 10.0))
    assert (other.verdict, other.reason) == (PublishedVerdict.DIFFERS, "no reason is known")
    heavy = MAIN["fglmcts λ=0.5"]
    known = compare_row(heavy, ours(heavy, 5000.0, 10.0))
    assert known.verdict is PublishedVerdict.DIFFERS
    assert "possible reason: " in known.reason
    assert "heavy-tailed" in known.reason
    assert "frozen" not in known.reason


def test_a_frozen_chain_of_ours_is_named_first() -> None:
    row = MAIN["pfghmcts λ=0.5"]
    stuck = dataclasses.replace(
        ours(row, 20_000.0, 9_000.0), health={"acceptance": np.full((10, 3), 0.001)}
    )
    assert compare_row(row, stuck).reason.startswith("our chains end frozen")


def test_the_level_decides() -> None:
    """A difference with p between 0.01 and 0.05 agrees at the one and differs at the other."""
    close = ours(LMCTS, 72.5, 9.5)
    (at_01,) = compare_rows([LMCTS], [close])
    (at_05,) = compare_rows([LMCTS], [close], level=0.05)
    assert at_01.test is not None
    assert 0.01 < at_01.test.p < 0.05
    assert (at_01.verdict, at_05.verdict) == (PublishedVerdict.AGREES, PublishedVerdict.DIFFERS)
    with pytest.raises(FeelgoodError, match="level = 0"):
        compare_rows([LMCTS], [close], level=0.0)


def test_fewer_rounds_are_shown_but_not_compared() -> None:
    short = compare_row(LMCTS, ours(LMCTS, 62.6, 9.5, rounds=500))
    assert short.verdict is PublishedVerdict.NOT_COMPARABLE
    assert short.reason == "run with T = 500 rounds, published with T = 10,000"
    assert short.ours is not None
    assert "62.6 ± 9.5 (10)" in to_markdown([short], "t")


def test_a_slip_cannot_be_compared_however_close_the_numbers() -> None:
    (row,) = rows("main", ["linear-40"], ["svrglmcts"])
    found = compare_row(row, ours(row, row.published.mean, row.published.std))
    assert found.verdict is PublishedVerdict.NOT_COMPARABLE
    assert found.reason == row.not_comparable


def test_diverged_chains_are_counted_and_never_agree() -> None:
    good = ours(LMCTS, 62.6, 9.5)
    values = good.final_regret.copy()
    values[:3] = np.nan
    broken = result("lmcts", values, rounds=10_000)
    found = compare_row(LMCTS, broken)
    assert (found.verdict, found.diverged) == (PublishedVerdict.DIFFERS, 3)
    assert "3 of our 10 chains diverged" in found.reason
    assert found.ours is not None
    assert found.ours.count == 7
    gone = compare_row(LMCTS, result("lmcts", [np.nan, np.nan], rounds=10_000))
    assert gone.verdict is PublishedVerdict.DIFFERS
    assert "–" in to_markdown([gone], "t")


def test_one_seed_is_too_few_and_none_is_not_run() -> None:
    single = compare_row(LMCTS, result("lmcts", [60.0], rounds=10_000))
    assert single.verdict is PublishedVerdict.NOT_COMPARABLE
    assert "too few" in single.reason
    assert "60.0 (1)" in to_markdown([single], "t")
    nothing = compare_row(LMCTS, "it has not been run")
    assert (nothing.verdict, nothing.ours) == (PublishedVerdict.NOT_RUN, None)
    assert nothing.reason == "it has not been run"


def test_simple_regret_is_compared_with_simple_regret() -> None:
    row = next(r for r in rows("neuralts-simple") if r.not_comparable is None)
    found = compare_row(row, ours(row, 10.0, 1.0, rounds=row.rounds))
    assert found.ours is not None
    assert found.ours.mean == pytest.approx(5.0)  # made results: half of the final regret


@pytest.fixture
def comparisons() -> tuple[PublishedComparison, ...]:
    evil = dataclasses.replace(
        MAIN["plmcts"], agent="p|l_m*c&ts\\%", remark='50% of $x_1$, "a|b" & {c} [bold]#~^\n'
    )
    chosen = [LMCTS, MAIN["fglmcts λ=0.5"], evil, MAIN["hmcts"]]
    results = [
        ours(chosen[0], 62.0, 9.0),
        ours(chosen[1], 150.0, 99.0),
        ours(evil, 1.0, 0.1),
        "none",
    ]
    return compare_rows(chosen, results)


def test_captions_state_level_and_counts(comparisons: tuple[PublishedComparison, ...]) -> None:
    text = caption(comparisons, "Main", 0.01)
    assert "level 0.01" in text
    assert counts(comparisons) == "agrees: 2, differs: 1, not run: 1"
    assert counts(comparisons) in text
    for rendered in (
        to_markdown(comparisons, "Main"),
        to_latex(comparisons, "Main"),
    ):
        assert "level 0.01" in rendered


def test_markdown_keeps_its_columns(comparisons: tuple[PublishedComparison, ...]) -> None:
    text = to_markdown(comparisons, "Main | x")
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    assert len(lines) == 1 + len(comparisons)
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in lines} == {9}
    assert r"p\|l\_m\*c&ts\\%" in lines[3]


def test_csv_can_be_read_back(comparisons: tuple[PublishedComparison, ...]) -> None:
    records = list(csv.DictReader(io.StringIO(to_csv(comparisons, "Main"))))
    assert list(records[0]) == CSV_COLUMNS
    assert [r["verdict"] for r in records] == ["agrees", "agrees", "differs", "not run"]
    assert records[2]["agent"] == "p|l_m*c&ts\\%"
    assert records[2]["reason"] == 'possible reason: 50% of $x_1$, "a|b" & {c} [bold]#~^\n'
    assert float(records[0]["ours_mean"]) == pytest.approx(62.0)
    assert float(records[0]["published_mean"]) == 62.6
    assert records[3]["ours_mean"] == records[3]["p"] == ""


def test_latex_is_escaped(comparisons: tuple[PublishedComparison, ...]) -> None:
    assert escape_latex(r"50% of $x_1$ & {c} #~^\ ± λ") == (
        r"50\% of \$x\_1\$ \& \{c\} \#\textasciitilde{}\textasciicircum{}\textbackslash{}"
        r" $\pm$ $\lambda$"
    )
    text = to_latex(comparisons, "100% & more")
    assert r"\caption{100\% \& more." in text
    body = text.split(r"\midrule")[1].split(r"\bottomrule")[0]
    for line in body.strip().splitlines():
        assert line.endswith(r" \\")
        assert len(re.findall(r"(?<!\\)&", line)) == 7
    assert r"fglmcts $\lambda$=0.5" in body
    assert text.isascii()


def test_every_reason_and_title_prints_in_latex() -> None:
    from feelgood.paper.published_rows import TITLES

    for table, title in TITLES.items():
        assert escape_latex(title).isascii(), title
        for row in rows(table):
            for text in (row.label, row.remark, row.not_comparable):
                assert escape_latex(text or "").isascii(), text


def test_the_terminal_shows_reasons_below_and_takes_no_markup(
    comparisons: tuple[PublishedComparison, ...],
) -> None:
    console = Console(width=140, record=True, file=io.StringIO())
    console.print(to_rich(comparisons, "Main"))
    text = console.export_text()
    assert "[bold]" in text
    assert "differs (1)" in text
    assert "(1) possible reason: 50% of" in text
    assert "level 0.01" in text
