"""docs/presets.md has every setting of the presets, as they are, with a source or a reason."""

import functools
from pathlib import Path

import pytest

from feelgood.core.lookup import preset_settings
from feelgood.paper import setting_table
from feelgood.paper.setting_table import FAMILIES, NONE, SettingRow, same, setting_rows, stated

LAMBDA_TABLES = ("released-equal-beta", "released-beta1-appendix")
ROOT = Path(__file__).resolve().parents[2]


@functools.cache
def all_rows() -> list[SettingRow]:
    return [row for family in FAMILIES for row in setting_rows(family)]


def shown_rows() -> list[SettingRow]:
    return [row for row in all_rows() if row.setting not in setting_table._OURS]


def the_row(family: str, agent: str, setting: str) -> SettingRow:
    (row,) = (r for r in all_rows() if (r.family, r.agent, r.setting) == (family, agent, setting))
    return row


def test_the_page_is_what_the_presets_give() -> None:
    text = (ROOT / "docs" / "presets.md").read_text()
    command = "python -m feelgood.paper.setting_table > docs/presets.md"
    assert text == setting_table.page() + "\n", f"run {command}"


def test_whatever_differs_from_its_source_has_a_reason() -> None:
    silent = [row for row in shown_rows() if row.differs and not row.reason]
    assert silent == []


def test_whatever_has_no_source_has_a_reason() -> None:
    """Where neither text nor code states it, or the code states it and its agent has it not."""
    for row in shown_rows():
        sourced = row.stated.text or row.stated.code
        unused = row.stated.code and row.released == NONE
        assert (sourced and not unused) or row.reason, row


def test_text_and_code_differ_only_where_both_state_it() -> None:
    """Where the code is silent, `released` has something else for a reason of its own."""
    found = [row for row in shown_rows() if row.reason == "text and code differ"]
    assert len(found) > 10
    for row in found:
        assert row.stated.text and row.stated.code, row
        assert not same(row.stated.text, row.stated.code), row
    for agent, word in (("plmcts", "fits η = 10"), ("sfglmcts", "fits 5 arms")):
        assert word in the_row("logistic", agent, "eta").reason


def test_every_reason_and_every_statement_is_used() -> None:
    used = {row.reason for row in shown_rows()}
    assert {choice["why"] for choice in setting_table._choices()} - used == set()
    known = {(row.family, row.agent) for row in shown_rows()}
    assert {key[:2] for key in stated()} - known == set()


def test_presets_that_no_source_states_are_shown() -> None:
    lines = setting_table.page().split("## Presets of ours")[1].splitlines()
    found = [line.strip("| ").split(" | ") for line in lines if line.startswith("| `")]
    assert {preset for preset, *_ in found} == {"`constant-bonus`", "`beta-1`"}
    assert ["`beta-1`", "`malats`", "beta 1, eta 1, rho 0.01, early 1, step 0.4"] in found
    assert all("lam 0.1" in own for preset, _, own in found if "constant" in preset)


@pytest.mark.parametrize(
    ("family", "agent", "setting", "want"),
    [
        ("linear", "linucb", "alpha", ("0.1", "1", "813", "config/linear/linucb.json:12")),
        (
            "covertype",
            "neural-fglmcts",
            "temperature",
            ("1e-05", "1e-06", "976", "covtype-fglmcts.yaml"),
        ),
        (
            "mushroom",
            "neural-lmcts",
            "temperature",
            ("1e-05", "1e-06", "1014", "mushroom-lmcts.yaml"),
        ),
        ("restaurant", "fg-neural-ts", "lam", ("0.01", NONE, "1114", "")),
        ("magic", "neural-eps-greedy", "epsilon", ("0.1", "0.05", "994", "")),
        ("logistic", "malats", "eta", ("1", "1", "927", "")),
        ("wheel", "fglmcts", "lam", ("0.01", NONE, "1336", "")),
        ("covertype", "neural-ucb", "likelihood", ("bernoulli", "squared", "978", "helper.py:327")),
    ],
)
def test_some_settings(family: str, agent: str, setting: str, want: tuple[str, ...]) -> None:
    row = the_row(family, agent, setting)
    assert (row.paper, row.released, row.stated.line) == want[:3]
    assert want[3] in row.stated.place


def test_values_are_compared_as_numbers() -> None:
    assert same("1e-05", "0.00001") and same("1", "1.0") and same("relu", "relu")
    assert not same("1", "10") and not same("decay", "constant") and not same("1", "")


@pytest.mark.parametrize("family", FAMILIES)
def test_other_presets_differ_in_the_temperature_alone(family: str) -> None:
    testbed, spec, rounds = FAMILIES[family]
    for row in setting_rows(family):
        for base, others in (
            ("paper", ("paper-beta1", "paper-beta1-appendix", "paper-equal-beta")),
            ("released", ("released-beta1", "released-beta1-appendix", "released-equal-beta")),
        ):
            own = preset_settings(base, row.agent, testbed, spec, rounds)
            for name in others:
                other = preset_settings(name, row.agent, testbed, spec, rounds)
                changed = {key for key in own | other if own.get(key) != other.get(key)}
                if family == "logistic" and name in LAMBDA_TABLES and "eta" in changed:
                    assert (other["eta"], other["step"]) == (10.0, 0.001)
                    changed -= {"eta", "step"}
                assert changed <= {"beta"}, (name, row.agent, changed)
