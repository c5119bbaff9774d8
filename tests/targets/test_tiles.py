"""The bonus of a chain that has a program of its own, against the formula in float64."""

import dataclasses
import itertools
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from grids import covering
from proofs import levels
from proofs.energies import ROUNDING, points_for
from proofs.levels import require
from proofs.targets import agent, flat, formula_of, learned, problem, quick_jit, unflat

from feelgood import Spec
from feelgood.numerics import chain_programs
from feelgood.numerics.chain_programs import THREADS
from feelgood.targets.best_arms import add_at_first
from feelgood.targets.evaluators.tiles import Tiles
from feelgood.targets.history import Rows
from feelgood.targets.room import SMALLEST_ROOM

#: Rounds of a turn.
TURN = THREADS.stride
#: A store whose last turn is moved back, to end with it.
ROOM = 2 * TURN + 88

FORMS: dict[str, tuple[str, dict[str, Any]]] = {
    "hard": ("fglmcts", {"b": 0.5}),
    "sqrt": ("fglmcts", {"b": 1000.0, "lam_schedule": "sqrt"}),
    "prior mass": ("fglmcts", {"b": 1.5, "lam_schedule": "prior-mass", "horizon": 30.0}),
    "smoothed": ("sfglmcts", {"b": 0.5, "s": 2.0}),
}


def evaluate(evaluator: Tiles, rows: Rows, theta: Any) -> Any:
    # Anew at every call: it must not find the program of another spread.
    return quick_jit(lambda e, r, x: e.evaluate((), r, x, jnp.zeros((0,))))(evaluator, rows, theta)


@pytest.mark.parametrize(
    ("form", "rounds"), covering(itertools.product(FORMS, (1, TURN, TURN + 1, 2 * TURN, ROOM)))
)
def test_tiles_have_the_value_and_the_gradient_of_the_formula(form: str, rounds: int) -> None:
    require(checks_of(form, rounds))


@pytest.mark.parametrize("other", [{"together": 1}, {"tile": 32, "together": 3, "at_once": 2}])
def test_tiles_of_another_spread_have_them_too(
    other: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chain_programs, "THREADS", THREADS._replace(**other))
    require(checks_of("hard", TURN + 1))


def test_the_smallest_store_has_room_for_a_turn() -> None:
    assert TURN <= SMALLEST_ROOM


def test_of_arms_with_the_same_score_the_first_one_wins() -> None:
    """And what has no best score is not counted, whatever its scores are."""
    scores = jnp.asarray([[1.0, 2.0, 0.0, jnp.nan], [1.0, 3.0, 0.0, 5.0], [0.5, 3.0, 0.0, 5.0]])
    best, rows = jnp.asarray([1.0, 3.0, 0.0, jnp.nan]), jnp.ones((2, 4))
    won = add_at_first(jnp.full((2, 3, 4), 7.0), rows, scores, best)[0] - 7.0
    np.testing.assert_array_equal(won, [[1, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0]])


def checks_of(form: str, rounds: int) -> list[levels.Check]:
    name, values = FORMS[form]
    policy, data = agent(name, lam=0.5, **values), problem(Spec(arms=3, dim=2), rounds)
    formula = dataclasses.replace(formula_of(policy, data), eta=0.0, rho=0.0)
    state = learned(policy, data)
    rows, bonus = state.data.rows, policy.bonus
    assert rows is not None and bonus is not None
    # What is behind the last round must not matter.
    junk = jnp.where(jnp.arange(ROOM) < rounds, 0.0, 7.0)
    rows = rows.reserve(ROOM)
    rows = eqx.tree_at(lambda r: r.contexts, rows, rows.contexts[:, :ROOM] + junk)
    rows = eqx.tree_at(lambda r: (r.arms, r.rewards), rows, (rows.arms[:ROOM], rows.rewards[:ROOM]))
    checks = []
    for point in points_for([formula], f"tiles {form} {rounds}", 2):
        value, gradient, _ = evaluate(
            Tiles(bonus=bonus, spec=data.spec), rows, unflat(point, data.spec)
        )
        size, steep = formula.size(point[None])[0], formula.gradient_size(point[None])[0]
        got = -float(bonus.strength) * np.asarray(value), -float(bonus.strength) * flat(gradient)
        checks.append(levels.close("value", got[0], formula.value(point), ROUNDING * size))
        checks.append(levels.close("gradient", got[1], formula.gradient(point), ROUNDING * steep))
    return checks
