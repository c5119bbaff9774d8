"""docs/presets.md has every setting of the presets, as they are, with a source or a reason."""

import functools
from pathlib import Path

import pytest

from feelgood.paper import setting_table
from feelgood.paper.setting_table import FAMILIES, NONE, SettingRow, same, setting_rows, stated

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


def test_every_reason_and_every_statement_is_used() -> None:
    used = {row.why for row in shown_rows() if row.differs}
    assert {choice["why"] for choice in setting_table._choices()} - used == set()
    known = {(row.family, row.agent) for row in shown_rows()}
    assert {key[:2] for key in stated()} - known == set()


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
    ],
)
def test_some_settings(family: str, agent: str, setting: str, want: tuple[str, ...]) -> None:
    row = the_row(family, agent, setting)
    assert (row.paper, row.released, row.stated.line) == want[:3]
    assert want[3] in row.stated.place


def test_values_are_compared_as_numbers() -> None:
    assert same("1e-05", "0.00001") and same("1", "1.0") and same("relu", "relu")
    assert not same("1", "10") and not same("decay", "constant") and not same("1", "")
