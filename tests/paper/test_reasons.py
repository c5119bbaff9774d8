"""Reasons are data: each is a table of patterns and a sentence, and holds for some number."""

import tomllib
from importlib.resources import files

import pytest

from feelgood.core.errors import FeelgoodError
from feelgood.paper import reasons
from feelgood.paper.published_numbers import Published, all_published

TEXT = files("feelgood.paper").joinpath("reasons.toml").read_text(encoding="utf-8")
ALL = tomllib.loads(TEXT)


def number(**changes: object) -> Published:
    values: dict = {
        "table": "main",
        "testbed": "linear-20",
        "agent": "lmcts",
        "lam": None,
        "beta": 1000.0,
        "delta": None,
        "gamma": None,
        "metric": "cumulative_regret",
        "mean": 1.0,
        "std": 1.0,
        "seeds": 10,
    }
    return Published(**values | changes)


def test_every_reason_is_the_first_one_of_some_published_number() -> None:
    """One that never holds is a slip in a pattern, or stands behind a wider one."""
    assert ALL.keys() == {"reason"}
    used = {reasons.reason(published) for published in all_published()}
    assert {one["reason"] for one in ALL["reason"]} == used - {None}


@pytest.mark.parametrize(
    ("patterns", "fits", "fits_not"),
    [
        ({"testbed": "linear-*"}, {"testbed": "linear-40"}, {"testbed": "wheel-0.5"}),
        ({"agent": "hmcts fghmcts"}, {"agent": "fghmcts"}, {"agent": "pfghmcts"}),
        ({"lam": 0.1}, {"lam": 0.1}, {"lam": 0.5}),
        ({"lam": 0.1}, {"lam": 0.1}, {"lam": None}),
        ({"lam": ">=0.5"}, {"lam": 0.5}, {"lam": 0.1}),
        ({"gamma": ">=0"}, {"gamma": 0.0}, {"gamma": None}),
        ({"table": "main", "beta": 1}, {"beta": 1.0}, {"beta": 1.0, "table": "other"}),
    ],
)
def test_patterns(patterns: dict, fits: dict, fits_not: dict) -> None:
    assert reasons.holds(patterns, number(**fits))
    assert not reasons.holds(patterns, number(**fits_not))


@pytest.mark.parametrize("wrong", [{}, {"agnet": "lmcts"}])
def test_a_reason_for_everything_or_with_a_slip_is_refused(wrong: dict) -> None:
    with pytest.raises(
        FeelgoodError, match=r"reasons\.toml has a reason for .*: use some of table"
    ):
        reasons._checked(wrong | {"reason": "because"})
