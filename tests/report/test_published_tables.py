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
from feelgood.paper.reproducing import NOT_YET
from feelgood.report.latex import escape_latex
from feelgood.report.published_comparisons import (
    PublishedComparison,
    PublishedVerdict,
    caption,
    compare_row,
    compare_rows,
    counts,
    with_released,
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
    assert same.test is not None and same.equivalence is not None
    assert same.test.p > 0.8
    assert same.equivalence.p < 0.05
    assert same.evidence == "62.0 ± 10.0 (10); 90 % interval of the difference -12 to +12 %"
    wide = compare_row(LMCTS, ours(LMCTS, 62.0, 30.0))
    assert (wide.verdict, wide.reason) == (PublishedVerdict.UNCERTAIN, "")
    assert wide.evidence.startswith("62.0 ± 30.0 (10); a difference below ")
    assert wide.smallest > 0.5 * LMCTS.published.mean
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


def test_a_small_difference_that_is_certain_agrees_all_the_same() -> None:
    """Equal within 20 % comes first, however well the means are told apart."""
    close = compare_row(LMCTS, ours(LMCTS, 62.6 * 0.9, 0.1, n=1_000))
    assert close.verdict is PublishedVerdict.AGREES
    exact = dataclasses.replace(LMCTS, published=dataclasses.replace(LMCTS.published, std=0.1))
    sharp = compare_row(exact, ours(LMCTS, 62.6 * 0.9, 0.1, n=100))
    assert sharp.test is not None and sharp.test.rejects
    assert sharp.verdict is PublishedVerdict.AGREES


def test_a_published_zero_has_the_rounding_as_its_margin() -> None:
    zero = dataclasses.replace(
        LMCTS, published=dataclasses.replace(LMCTS.published, mean=0.0, std=0.0)
    )
    exactly = compare_row(zero, result("lmcts", np.zeros(10), rounds=10_000))
    assert exactly.verdict is PublishedVerdict.AGREES
    assert compare_row(zero, ours(LMCTS, 3.0, 1.0)).verdict is PublishedVerdict.DIFFERS


def test_the_released_code_explains_what_the_text_does_not() -> None:
    """Agreement with the text comes first; a number that was not run has the code's verdict."""
    code = dataclasses.replace(LMCTS, reading="released")
    far, near, wide = (
        ours(LMCTS, mean, std) for mean, std in ((90.0, 10.0), (62.0, 10.0), (62.0, 40.0))
    )

    def both(text: AgentResult | str, released: AgentResult | str) -> PublishedComparison:
        return with_released(compare_row(LMCTS, text), compare_row(code, released))

    verdict = PublishedVerdict
    never = "the script is lost"
    expected = {
        verdict.AGREES: [(near, near), (near, far), (near, NOT_YET)],
        verdict.EXPLAINED: [(far, near), (wide, near), (NOT_YET, near), (never, near)],
        verdict.DIFFERS: [(far, far), (far, wide), (far, never), (NOT_YET, far)],
        verdict.UNCERTAIN: [(wide, far), (wide, wide), (never, wide)],
        verdict.NOT_RUN: [(NOT_YET, NOT_YET), (never, NOT_YET), (NOT_YET, never)],
        verdict.CANNOT: [(never, never)],
    }
    for wanted, pairs in expected.items():
        for text, released in pairs:
            found = both(text, released)
            assert found.verdict is wanted, (text, released)
            assert found.evidence, "every verdict has its numbers or its reason"
    assert both(far, near).reason == "the released code has 62.0 ± 10.0 (10)"
    assert both(far, near).evidence.startswith("the released code: 62.0 ± 10.0 (10); 90 % interval")
    assert both(far, wide).reason.endswith("40.0 (10), not told apart from the published")
    assert both(never, never).evidence == never
    few = dataclasses.replace(compare_row(code, wide), few=True)
    said = with_released(compare_row(LMCTS, far), few).reason
    assert said.endswith("40.0 (10), too few seeds to tell")


def test_a_run_that_is_not_the_code_explains_nothing() -> None:
    """The wheel: one arm for ever has the published numbers, and the verdict is the text's."""
    row = rows("wheel")[0]
    code = rows("wheel", reading="released")[0]
    assert (code.explains, row.explains) == (False, True)
    theirs = row.published
    near = compare_row(code, ours(code, theirs.mean, theirs.std, rounds=code.rounds))
    assert near.verdict is PublishedVerdict.AGREES and "no agent of the code" in near.reason
    far = with_released(
        compare_row(row, ours(row, 30.0 * theirs.mean, theirs.std, rounds=row.rounds)), near
    )
    assert far.verdict is PublishedVerdict.DIFFERS
    assert "one outer arm for ever in that world has " in far.reason
    assert "released code" not in far.evidence and "released code" not in far.reason
    idle = with_released(compare_row(row, NOT_YET), near)
    assert idle.verdict is PublishedVerdict.NOT_RUN
    (line,) = csv.DictReader(io.StringIO(to_csv([far], "t")))
    assert line["released_run"] == "one outer arm for ever in that world"


def test_what_could_have_been_seen_is_seen_by_both_tests() -> None:
    """One seed in ten is stuck: Welch's test sees less than resampling ten seeds needs."""
    values = np.tile([60.0, 61.0, 62.0, 63.0, 64.0, 60.0, 61.0, 62.0, 63.0, 600.0], 10)
    steady = dataclasses.replace(LMCTS, published=dataclasses.replace(LMCTS.published, std=1.0))
    for mean in np.linspace(62.0, 600.0, 60):
        far = dataclasses.replace(steady.published, mean=float(mean))
        found = compare_row(
            dataclasses.replace(steady, published=far), result("lmcts", values, rounds=10_000)
        )
        assert found.ours is not None
        if abs(found.ours.mean - mean) > found.smallest:
            assert found.verdict is PublishedVerdict.DIFFERS
    assert found.verdict is PublishedVerdict.DIFFERS


def test_the_level_decides() -> None:
    """A difference with p between 0.01 and 0.05 is open at the one and differs at the other."""
    close = ours(LMCTS, 72.5, 9.5)
    (at_01,) = compare_rows([LMCTS], [close])
    (at_05,) = compare_rows([LMCTS], [close], level=0.05)
    assert at_01.test is not None
    assert 0.01 < at_01.test.p < 0.05
    assert (at_01.verdict, at_05.verdict) == (PublishedVerdict.UNCERTAIN, PublishedVerdict.DIFFERS)
    with pytest.raises(FeelgoodError, match="level = 0"):
        compare_rows([LMCTS], [close], level=0.0)


def test_fewer_rounds_are_shown_but_not_compared() -> None:
    short = compare_row(LMCTS, ours(LMCTS, 62.6, 9.5, rounds=500))
    assert short.verdict is PublishedVerdict.NOT_RUN
    assert short.reason == "run with T = 500 rounds, published with T = 10,000"
    assert short.ours is not None
    assert "62.6 ± 9.5 (10)" in to_markdown([short], "t")


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
    assert single.verdict is PublishedVerdict.UNCERTAIN
    assert "too few" in single.reason
    assert "60.0 (1)" in to_markdown([single], "t")
    nothing = compare_row(LMCTS, "it has not been run")
    assert (nothing.verdict, nothing.ours) == (PublishedVerdict.NOT_RUN, None)
    assert nothing.reason == "it has not been run"


def test_simple_regret_is_compared_with_simple_regret() -> None:
    row = rows("neuralts-simple")[0]
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
    assert (
        counts(comparisons) == "agrees: 1, differs: 1, too uncertain to tell: 1, cannot be run: 1"
    )
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
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in lines} == {10}
    assert r"p\|l\_m\*c&ts\\%" in lines[3]


def test_csv_can_be_read_back(comparisons: tuple[PublishedComparison, ...]) -> None:
    records = list(csv.DictReader(io.StringIO(to_csv(comparisons, "Main"))))
    assert list(records[0]) == CSV_COLUMNS
    assert [r["verdict"] for r in records] == [
        "agrees",
        "too uncertain to tell",
        "differs",
        "cannot be run",
    ]
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
        assert len(re.findall(r"(?<!\\)&", line)) == 8
    assert r"fglmcts $\lambda$=0.5" in body
    assert text.isascii()


def test_every_reason_and_title_prints_in_latex() -> None:
    from feelgood.paper.published_rows import TITLES

    for table, title in TITLES.items():
        assert escape_latex(title).isascii(), title
        for row in rows(table):
            for text in (row.label, row.remark):
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
