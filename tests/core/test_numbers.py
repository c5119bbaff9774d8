"""Numbers as people read them."""

import math

import pytest

from feelgood.core import numbers


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (0.1234567, "0.1235"),
        (1.234, "1.23"),
        (12.34, "12.3"),
        (12345.67, "12,345.7"),
        (-3.0, "-3.00"),
        (math.nan, "–"),
        (math.inf, "–"),
    ],
)
def test_a_figure_has_few_characters(value: float, text: str) -> None:
    assert numbers.figure(value) == text


def test_a_spread_has_the_digits_of_its_mean() -> None:
    assert numbers.figure(0.5, like=100.0) == "0.5"
    assert numbers.mean_and_std(12.34, 5.678, 3, 1) == "12.3 ± 5.7"
    assert numbers.mean_and_std(12.34, math.nan, 1, 2) == "12.34"
    assert numbers.mean_and_std(math.nan, math.nan, 0, 2) == "–"


def test_numbers_of_tables() -> None:
    assert numbers.table_number(9999.94) == "9,999.9"
    assert numbers.table_number(12345.6) == "12,346"
    assert numbers.tile_number(1234.5) == "1,234"
    assert numbers.tile_number(0.12345) == "0.123"
    assert numbers.mean_std_count(10.0, 2.0, 5) == "10.0 ± 2.0 (5)"
    assert numbers.mean_std_count(10.0, math.nan, 1) == "10.0 (1)"
    assert numbers.mean_std_count(math.nan, math.nan, 0) == "–"
    shown = [numbers.p_text(p) for p in (1e-9, 0.01234, 0.5, math.nan)]
    assert shown == ["<0.0001", "0.0123", "0.50", "–"]


def test_signs_are_no_hyphens() -> None:
    assert (numbers.with_minus(-1.25), numbers.with_minus(1.25)) == ("−1.2", "1.2")
    assert (numbers.with_sign(-1.25), numbers.with_sign(1234.0)) == ("−1.2", "+1,234")


def test_values_of_charts_and_settings() -> None:
    assert numbers.rounded(123.456789) == 123.46
    assert numbers.rounded(math.nan) is None
    assert [numbers.setting_text(v) for v in (0.123456, 3, "sqrt", True)] == [
        "0.1235",
        "3",
        "sqrt",
        "True",
    ]


def test_durations() -> None:
    assert [numbers.duration(s) for s in (45.0, 720.0, 11_520.0)] == ["45 s", "12 min", "3.2 h"]
