"""Every published number can be put beside what the released code does."""

import math
from typing import Any

import pytest

from feelgood.core.errors import FeelgoodError
from feelgood.core.lookup import preset_settings
from feelgood.core.policy import AGENTS
from feelgood.core.spec import Spec
from feelgood.core.testbed import TESTBEDS
from feelgood.paper import released_runs
from feelgood.paper.published_numbers import all_published, published
from feelgood.paper.published_rows import TITLES, PublishedRow, missing, rows, to_row

ALL = [to_row(number, "released") for number in all_published()]


def one(reading: str = "released", **wanted: Any) -> PublishedRow:
    (number,) = published(**wanted)
    return to_row(number, reading)


def test_every_row_can_be_run_or_says_why_not() -> None:
    cannot = [row for row in ALL if row.cannot is not None]
    beds = {row.published.testbed for row in cannot}
    assert beds == {"financial", "restaurant", "cifar10", "jester"}
    assert all(missing(row) == row.cannot for row in cannot)
    for row in ALL:
        if row.cannot is not None:
            continue
        assert missing(row) is None, row
        assert row.reading == "released"
        TESTBEDS[row.testbed].resolve(row.testbed_settings)
        known = AGENTS[row.agent].settings
        spec = Spec(arms=5, dim=4)
        values = preset_settings(row.preset, row.agent, row.testbed, spec, row.rounds)
        chosen = {key: value for key, value in values.items() if key in known}
        AGENTS[row.agent].resolve(chosen | {**row.settings})


def test_what_a_row_runs() -> None:
    malats = one(table="lambda-linear-20-b1", agent="fgmalats", lam=0.01)
    assert (malats.testbed, malats.agent) == ("released-linear-20", "released-fgmalats")
    assert (malats.preset, malats.settings) == ("released-beta1-appendix", {"lam": 0.01})
    assert one(table="main", agent="svrglmcts", testbed="linear-40").agent == "released-svrglmcts"
    assert one(table="main", agent="epsgreedy", testbed="linear-40").agent == (
        "released-epsgreedy-tabular"
    )
    damped = one(table="damping", agent="usfglmcts")
    assert (damped.agent, damped.settings) == ("released-ulmcts", {})
    wheel = published(table="wheel", agent="lmcts", testbed="wheel-0.1")[0]
    wheel_row = to_row(wheel, "released")
    assert (wheel_row.testbed, wheel_row.agent) == ("wheel-0.1", "released-one-arm")
    assert wheel_row.testbed_settings == {"mu1": 0.15, "mu2": 0.1, "mu3": 1.0}


def test_only_the_wheel_stands_beside_something_else_than_the_code() -> None:
    for row in ALL:
        assert row.explains == (not row.published.testbed.startswith("wheel"))
        assert row.explains == (row.stands_for == "the released code")


def test_rows_of_networks() -> None:
    """No bonus for FGLMCTS, and NeuralTS under the name of NeuralUCB on adult."""
    for agent in ("neural-lmcts", "neural-fglmcts", "neural-sfglmcts"):
        row = one(table="neural-cumulative", agent=agent, testbed="mushroom")
        assert (row.agent, row.testbed) == ("released-neural-lmcts", "released-mushroom")
        assert dict(row.settings) == {}
    ucb = one(table="neural-simple", agent="neural-ucb", testbed="adult")
    assert (ucb.agent, dict(ucb.settings)) == ("released-neural-ts", {"reg": 0.001, "nu": 0.1})
    jester = one(table="neuralts-cumulative", agent="sfg-neural-ts", testbed="jester")
    assert (jester.agent, jester.testbed) == ("released-sfg-neural-ts", "released-jester")
    assert one(table="neuralts-simple", agent="neural-ts", testbed="shuttle").testbed == "shuttle"


def test_logistic_rows_are_in_their_environments() -> None:
    """50 arms where a λ table is repeated, 5 in the rest of the main table."""
    main = one(table="main", agent="lmcts", testbed="logistic-20")
    assert (main.testbed, main.testbed_settings) == ("released-logistic-20", {"arms": 5})
    assert main.preset == "released"
    for table, agent in (
        ("lambda-logistic-20-b1000", "fglmcts"),
        ("precondition-logistic", "pfglmcts"),
        ("precondition-linear", "psfglmcts"),  # a copying slip
    ):
        row = one(table=table, agent=agent, lam=0.1)
        assert (row.testbed, row.preset) == ("released-logistic-20", "released-equal-beta")
        assert row.testbed_settings.get("arms", 50) == 50


def test_the_paper_is_read_as_before() -> None:
    row = one("paper", table="main", agent="lmcts", testbed="linear-40")
    assert (row.testbed, row.agent, row.testbed_settings) == ("linear-40", "lmcts", {})
    with pytest.raises(FeelgoodError, match="no preset 'relesed': did you mean 'released'"):
        to_row(published(table="main")[0], "relesed")


def test_rows_are_picked_by_the_papers_name_or_by_ours() -> None:
    for name in ("linear-20", "released-linear-20"):
        chosen = rows("main", [name], ["malats"], "released")
        assert [r.agent for r in chosen] == ["released-malats"] * 2
    assert len([r for table in TITLES for r in rows(table, reading="released")]) == 545


def test_settings_of_the_presets() -> None:
    """Of the released settings: η, step, 1/β and α, at the places that docs/presets.md gives."""
    unit = 20 * math.log(10_000)
    wide, logistic = Spec(arms=5, dim=4), Spec(arms=50, dim=20, shared=True)
    expected = {
        ("released", "released-linear-20", "lmcts"): (1.0, 0.1, 1e-3 * unit),
        ("released", "released-linear-20", "plmcts"): (1.0, 0.1, 1e-2 * unit),
        ("released", "released-linear-20", "hmcts"): (1.0, 0.1, 1.0),
        ("released-beta1", "released-linear-20", "released-malats"): (1.0, 0.1, 1.0),
        ("released-beta1", "released-linear-20", "plmcts"): (1.0, 0.1, 1e-2 * unit),
        ("released-beta1-appendix", "released-linear-20", "plmcts"): (1.0, 0.1, unit),
        ("released", "released-logistic-20", "released-malats"): (1.0, 0.1, 1e-3 * unit),
        ("released", "released-logistic-20", "plmcts"): (10.0, 0.001, 1e-2 * unit),
        ("released-equal-beta", "released-logistic-20", "fglmcts"): (10.0, 0.001, 1e-3 * unit),
        ("released-equal-beta", "released-logistic-20", "plmcts"): (10.0, 0.001, 1e-3 * unit),
        ("released-beta1-appendix", "released-logistic-20", "plmcts"): (10.0, 0.001, unit),
    }
    for (preset, testbed, agent), (eta, step, warmth) in expected.items():
        spec = logistic if "logistic" in testbed else wide
        values = preset_settings(preset, agent, testbed, spec, 10_000)
        assert (values["eta"], values["step"]) == (eta, step), (preset, testbed, agent)
        assert 1.0 / values["beta"] == pytest.approx(warmth), (preset, testbed, agent)
    assert preset_settings("released", "linucb", "linear-20", wide, 10_000)["alpha"] == 1.0


def test_a_run_that_names_something_unknown_is_refused() -> None:
    for wrong in ({"tabel": "main", "preset": "released"}, {"table": "main"}):
        with pytest.raises(FeelgoodError, match=r"released\.toml has a run with"):
            released_runs._checked(wrong)
