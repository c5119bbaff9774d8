"""The two vocabularies: noise, prior and temperature, or the paper's β, η and ρ."""

import re
from typing import Any

import numpy as np
import pytest

import feelgood
from feelgood import AGENTS, FeelgoodError
from feelgood.core.settings import own_settings

#: Noise σ = 0.4, prior s = 2, temperature τ = 0.5 in both vocabularies, as docs/concepts.md says.
USERS = {"noise": 0.4, "prior": 2.0, "temperature": 0.5}
PAPERS: dict[str, dict[str, float]] = {
    "lints": {"eta": 1 / (0.4**2 * 0.5), "rho": 0.4**2 / 2.0**2},
    "lmcts": {"beta": 1 / 0.5, "eta": 1 / (2 * 0.4**2), "rho": 1 / (2 * 2.0**2)},
}


@pytest.mark.parametrize("agent", PAPERS)
def test_both_vocabularies_name_the_same_agent(agent: str) -> None:
    """The same regrets to rounding, over 300 rounds."""
    finals = [
        feelgood.run("linear-20", agent, rounds=300, seeds=4, settings={agent: values})[0]
        for values in (USERS, PAPERS[agent])
    ]
    one, two = (np.asarray(result.final_regret) for result in finals)
    np.testing.assert_allclose(one, two, rtol=1e-4)


@pytest.mark.parametrize("agent", ["lints", "lmcts", "pfghmcts", "blackjax:nuts"])
@pytest.mark.parametrize(
    "values", [{"noise": 1.0, "eta": 2.0}, {"prior": 1.0, "rho": 0.5}, {"noise": 1.0, "rho": 0.5}]
)
def test_a_mixture_is_refused(agent: str, values: dict[str, Any]) -> None:
    (user, number), (paper, other) = values.items()
    message = f"{user} = {number} and {paper} = {other} belong to different vocabularies"
    with pytest.raises(FeelgoodError, match=re.escape(message)):
        AGENTS[agent].build(values)


def test_a_setting_may_be_left_open_by_its_word() -> None:
    entry = AGENTS["lints"]
    assert entry.resolve({"noise": "Learned"})["noise"] == "learned"
    policy = entry.build({"noise": 2})
    assert own_settings(policy)["noise"] == 2.0 and own_settings(policy)["prior"] == "learned"
    with pytest.raises(FeelgoodError, match="use learned or a finite number above 0"):
        entry.build({"noise": "loud"})


@pytest.mark.slow
def test_a_sweep_over_words_and_numbers_is_one_result_each() -> None:
    """The numbers share a program, the word has one of its own; all come in the order given."""
    noises = ["learned", 0.5, 1.0]
    results = feelgood.run(
        "linear-20", "lints", rounds=50, seeds=2, settings={"lints": {"noise": noises}}
    )
    assert [result.settings["noise"] for result in results] == noises
