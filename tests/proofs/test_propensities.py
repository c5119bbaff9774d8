"""The arms that agents play have the probabilities that they say."""

import itertools
from collections.abc import Hashable, Iterable

import pytest
from grids import covering, slow_but
from proofs.levels import require
from proofs.propensities import propensity_checks
from taught import SPECS

from feelgood import AGENTS
from feelgood.core.errors import FeelgoodError

QUICK, MANY = 6_000, 100_000


def law_of(name: str, problem: str) -> str | None:
    """The function that says the law of an agent's scores."""
    policy = AGENTS[name].build()
    try:
        scores = policy.hints(SPECS[problem]).scores
    except FeelgoodError:  # it cannot play this
        return None
    return None if scores is None else scores.__qualname__


LAWS = {
    (name, problem): law
    for name, problem in itertools.product(AGENTS.names(), SPECS)
    if (law := law_of(name, problem)) is not None
}


def features(name: str, problem: str) -> Iterable[Hashable]:
    """Every function once: other problems take it longer to learn, not to say its law.

    Networks take long to compile; `neural-ts` is in the quick conformance.
    """
    return [] if "neural" in name else [LAWS[name, problem]]


@pytest.mark.parametrize(("name", "problem"), covering(LAWS, features))
def test_arms_are_played_with_the_probabilities_of_the_law(name: str, problem: str) -> None:
    require(propensity_checks(name, problem, QUICK))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "problem"), LAWS)
def test_a_hundred_thousand_decisions(name: str, problem: str) -> None:
    require(propensity_checks(name, problem, MANY))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("neural-ts", "disjoint"),
        ("neural-linear", "shared"),
        ("pg-ts", "disjoint, Bernoulli"),
        ("pg-ts", "shared, Bernoulli"),
        ("vits", "disjoint, Bernoulli"),
        ("vits", "shared, Bernoulli"),
    ],
)
def test_where_a_round_learns_the_law_is_that_given_what_it_learned(
    name: str, problem: str
) -> None:
    """Every decision has a law of its own; quick is the conformance of `neural-ts`."""
    settings = {"update_every": 1} if "neural" in name else {}
    require(propensity_checks(name, problem, QUICK, **settings))


@pytest.mark.parametrize(
    ("problem", "rounds"),
    slow_but([("shared", 12)], itertools.product(["disjoint", "shared"], [0, 12])),
)
def test_told_noise_and_temperature(problem: str, rounds: int) -> None:
    """Normal scores; before any data too."""
    told = {"noise": 0.5, "prior": 1.0, "temperature": 0.25}
    require(propensity_checks("lints", problem, QUICK, rounds, **told))


def test_every_way_to_say_a_law_is_tested() -> None:
    assert {name for name, _ in LAWS} >= {
        "ensemble++",
        "evill",
        "laplace-ts",
        "lints",
        "lints-inflated",
        "neural-linear",
        "neural-ts",
        "pg-ts",
        "vits",
    }
    assert ("evill", "shared, Bernoulli") not in LAWS and ("lmcts", "shared") not in LAWS
