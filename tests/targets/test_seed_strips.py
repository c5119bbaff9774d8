"""Passes that read only strips whose best arms may have changed sum what the plain pass does."""

import itertools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from grids import chosen, slow_but
from proofs.targets import SETTINGS, agent, quick_jit
from shared_contexts import (
    CHAINS,
    FORMS,
    KEYS,
    SEEDS,
    SWEPT,
    assert_same_draws,
    draw,
    evaluation,
    form_of,
    gaps_between,
    laid_out,
    points,
    rows_of,
    shown_to,
    swept,
    with_rounds,
)

from feelgood import AGENTS, Spec
from feelgood.agents.thompson import Thompson
from feelgood.core.spec import Layout
from feelgood.numerics.flagged import packed
from feelgood.targets.evaluators import FullPass, SeedStrips, seed_strips
from feelgood.targets.evaluators.seed_strips import SeedStore
from feelgood.targets.history import Rows
from feelgood.targets.strips import STRIP

ROOM = 512 + STRIP


def store_of(evaluator: SeedStrips, shown: np.ndarray, rounds: int) -> SeedStore:
    """Contexts [dim, arms, seeds, room] as a memo."""
    memo = evaluator.reserve(evaluator.init(), shown.shape[-1])
    by_strip = shown.reshape(*shown.shape[:-1], -1, STRIP)
    contexts = np.transpose(by_strip, (2, 3, 1, 0, 4))
    numbers = np.where(np.arange(shown.shape[-1]) < rounds, np.arange(shown.shape[-1]), -1)
    shown = memo.shown._replace(
        contexts=jnp.asarray(contexts),
        numbers=jnp.broadcast_to(numbers.reshape(-1, STRIP), memo.shown.numbers.shape),
        lengths=jnp.asarray(np.sqrt((contexts**2).sum(axis=3).max(axis=(2, 3)))),
    )
    return memo._replace(shown=shown)


def gaps(form: str, dim: int, rounds: int, arms: int = 5) -> list[tuple[float, float, float]]:
    """Value, gradient and value alone beside the plain ones, along a walk of short and long steps.

    Before its last points the rounds are sorted.
    """
    spec = laid_out(Spec(arms=arms, dim=dim, shared=True), "together", reads_all=False)
    shown, bonus = shown_to(spec, rounds, ROOM), form_of(form)
    rows, evaluator = rows_of(spec, shown, rounds), SeedStrips(bonus=bonus, spec=spec)
    plain, by_strips, full = FullPass(bonus=bonus, spec=spec), evaluation(), evaluation()
    memo, out, theta = store_of(evaluator, shown, rounds), [], points(dim)
    for k, step in enumerate((0.0, 1.0, 1e-3, 3e-2, 1e-3)):
        theta = theta + step * points(dim, k)
        if k == 3:
            memo = quick_jit(evaluator.begin)(memo, rows, theta)
            assert (memo.shown.sorted > 0) == (rounds > STRIP)
        found = by_strips(evaluator, memo, rows, theta)
        memo = found[3]
        out.append(gaps_between(found, full(plain, (), rows, theta), rounds))
    return out


def test_after_short_steps_few_strips_are_read() -> None:
    """Else the walk above would show little, and nothing were gained."""
    spec = laid_out(Spec(arms=5, dim=20, shared=True), "together", reads_all=False)
    evaluator = SeedStrips(bonus=form_of("hard"), spec=spec)
    rows = rows_of(spec, shown_to(spec, ROOM, ROOM), ROOM)
    memo = store_of(evaluator, shown_to(spec, ROOM, ROOM), ROOM)
    theta, evaluate = points(20), evaluation()
    memo = evaluate(evaluator, quick_jit(evaluator.begin)(memo, rows, theta), rows, theta)[3]
    after = evaluate(evaluator, memo, rows, theta + 1e-4 * points(20, 1))[3]
    again = np.any(after.found.anchors != memo.found.anchors, axis=(2, 3))
    assert 0 < again.sum() <= 2 * SEEDS < again.size


#: A dimension more takes longer to compile.
CASES = list(itertools.product(FORMS, (3, 20, 40), (1, STRIP, STRIP + 1, ROOM)))
QUICK = [*chosen(case for case in CASES if case[1] == 3), ("hard", 20, ROOM)]


@pytest.mark.parametrize(("form", "dim", "rounds"), slow_but(QUICK, CASES))
def test_strips_have_the_value_and_the_gradient_of_the_plain_path(
    form: str, dim: int, rounds: int
) -> None:
    assert np.max(gaps(form, dim, rounds)) < 2e-6


@pytest.mark.parametrize("count", slow_but([50], [2, 50]))
def test_any_number_of_arms(count: int) -> None:
    assert np.max(gaps("hard", 3, STRIP + 1, count)) < 2e-6


SEED = seed_strips._Seed
REAL_READ, REAL_RENEWED, REAL_COMPARED = SEED._read_one, SEED._renewed, SEED._compared


def no_replacement(self: Any, shown: Any, found: Any, strip: Any, winner: Any) -> Any:
    """Features of the best arms stay those of the first point."""
    first = jnp.any(found.winners[self.number, strip] < 0)
    renewed = REAL_RENEWED(self, shown, found, strip, winner)
    return jax.tree.map(lambda a, b: jnp.where(first, a, b), renewed, found)


def winners_alone(self: Any, shown: Any, found: Any, strip: Any, winner: Any) -> Any:
    return found._replace(winners=REAL_RENEWED(self, shown, found, strip, winner).winners)


def without_last_arm(self: Any, shown: Any, strip: Any, theta: Any) -> Any:
    fewer = shown._replace(contexts=shown.contexts[:, :, :-1])
    return REAL_COMPARED(self, fewer, strip, theta)


def other_seed(self: Any, shown: Any, strip: Any, theta: Any) -> Any:
    return REAL_COMPARED(self._replace(number=SEEDS - 1 - self.number), shown, strip, theta)


def levels_too_high(self: Any, shown: Any, found: Any, strip: Any) -> Any:
    """A strip is not read again where it should be."""
    found = REAL_READ(self, shown, found, strip)
    return found._replace(levels=30.0 * jnp.abs(found.levels))


MUTANTS = [
    ("_renewed", no_replacement),
    ("_renewed", winners_alone),
    ("_compared", without_last_arm),
    ("_compared", other_seed),
    ("_read_one", levels_too_high),
]


@pytest.mark.parametrize(("name", "wrong"), slow_but(MUTANTS[:1], MUTANTS))
def test_a_wrong_pass_is_noticed(name: str, wrong: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SEED, name, wrong)
    assert np.max(gaps("hard", 3, 2 * STRIP + 1)) > 1e-3


@pytest.mark.parametrize("forgotten", [False, True], ids=["capped", "mutant"])
def test_a_strip_is_read_again_where_its_best_scores_cross_the_cap(
    forgotten: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two arms that lie far apart: the lead alone would allow the step."""
    if forgotten:
        monkeypatch.setattr(seed_strips, "FeelGood", str)
        monkeypatch.setattr(SEED, "sums_of_scores", SEED.straight_sums)
    spec = Spec(arms=2, dim=1, shared=True)
    evaluator = SeedStrips(bonus=agent("fglmcts", b=0.5).bonus, spec=spec)
    shown = np.zeros((1, 2, 1, 512), np.float32)
    shown[0, :, 0, 0] = 1.0, -1.0
    memo = store_of(evaluator, shown, 1)
    rows = eqx.tree_at(
        lambda r: r.filled, Rows.empty(spec, all_arms=False, played=False), jnp.asarray(1)
    )
    values = []
    for theta in (0.45, 0.55):
        value, gradient, memo = evaluator.evaluate(
            memo, rows, jnp.full((1, 1), theta), jnp.zeros(0)
        )
        values += [float(value), float(gradient[0, 0])]
    assert np.allclose(values, [0.45, 1.0, 0.5, 0.0]) != forgotten


def test_flags_are_packed_from_the_lowest_bit_on() -> None:
    flags = np.zeros(64, bool)
    flags[[0, 5, 31, 32, 63]] = True
    np.testing.assert_array_equal(packed(jnp.asarray(flags)), [1 + 32 + 2**31, 1 + 2**31])


AGENTS_HERE = ("fglmcts", "sfglmcts", "pfglmcts", "usfglmcts", "fgmalats", "released-fgmalats")
DRAWS = list(itertools.product(AGENTS_HERE, ("squared", "bernoulli")))


@pytest.mark.parametrize(
    ("name", "rewards"),
    slow_but([("fglmcts", "bernoulli"), ("released-fgmalats", "squared")], DRAWS),
)
def test_chains_draw_what_they_draw_on_the_plain_path(
    name: str, rewards: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = swept(agent(name, **(SETTINGS | {"lam": 0.7, "steps": 3})))
    plain = Spec(arms=4, dim=3, shared=True, rewards=rewards)
    spec = laid_out(plain, "together", reads_all=False)
    found = []
    for kind in (FullPass, SeedStrips):
        if kind is FullPass:
            monkeypatch.setattr("feelgood.targets.evaluators.SeedStrips", FullPass)
        else:
            monkeypatch.undo()
        state = with_rounds(policy, spec, 150)
        assert type(policy._evaluator(spec)) is kind and state.data.rows is not None
        assert (state.data.rows.contexts is None) == (kind is SeedStrips), "kept in one place"
        found.append(draw(policy, state))
    assert_same_draws(*found, state.chain.theta)


def test_one_chain_has_the_same_pass() -> None:
    spec = Spec(arms=4, dim=3, shared=True)
    bonus = agent("fglmcts", lam=0.5).bonus
    evaluator = SeedStrips(bonus=bonus, spec=spec)
    shown = np.random.default_rng(0).normal(size=(3, 4, 1, 512)).astype(np.float32)
    rows = Rows.empty(spec, all_arms=True, played=False)
    rows = eqx.tree_at(
        lambda r: (r.contexts, r.filled), rows, (jnp.asarray(shown[:, :, 0]), jnp.asarray(300))
    )
    theta, no_luck = points(3)[..., 0], jnp.zeros(0)
    value, gradient, _ = evaluator.evaluate(store_of(evaluator, shown, 300), rows, theta, no_luck)
    plain = FullPass(bonus=bonus, spec=spec).evaluate((), rows, theta, no_luck)
    np.testing.assert_allclose(value, plain[0], rtol=2e-6)
    np.testing.assert_allclose(gradient, plain[1], rtol=2e-5, atol=1e-5)


def test_contexts_are_stored_once_per_seed_and_grow_by_themselves() -> None:
    spec = laid_out(Spec(arms=4, dim=3, shared=True), "together", reads_all=False)
    policy = agent("fglmcts", lam=0.5)
    state = policy.init(KEYS, spec)
    shown, found = state.chain.memo
    assert shown.contexts.shape == (SEEDS, 4, 4, 3, STRIP)
    assert found.winners.shape == (SEEDS, 4, SWEPT, STRIP)
    context = jnp.arange(12.0 * CHAINS).reshape(3, 4, CHAINS)
    full = eqx.tree_at(lambda s: s.data.rows.filled, state, jnp.asarray(512))
    full = policy.update(full, context, jnp.zeros(CHAINS, int), jnp.zeros(CHAINS))
    shown, found = full.chain.memo
    assert shown.contexts.shape == (SEEDS, 8, 4, 3, STRIP) and np.all(found.winners[:, 4:] == -1)
    np.testing.assert_array_equal(shown.contexts[1, 4, :, :, 0], context[..., 1].T)
    assert shown.numbers[1, 4, 0] == 512 and np.all(shown.numbers[:, 4, 1:] == -1)


def test_settings_of_a_seed_are_played_together_on_a_processor() -> None:
    """And not where each chain has contexts of its own to read."""
    shared, each = Spec(arms=4, dim=3, shared=True), Spec(arms=4, dim=3)
    assert AGENTS["fglmcts"].build().hints(shared).company == "seed"
    assert AGENTS["fglmcts"].build().hints(each).company == "none"
    assert AGENTS["jfgmalats"].build().hints(shared).company == "none"


@pytest.mark.parametrize(
    ("name", "values"),
    [("fghmcts", {}), ("jfgmalats", {}), ("fglmcts", {"bonus_gradient": "svrg"})],
    ids=["trajectories", "jumps", "estimated"],
)
def test_where_others_read_past_contexts_rows_keep_them(name: str, values: Any) -> None:
    policy = AGENTS[name].build(values)
    assert isinstance(policy, Thompson)
    evaluator = policy._evaluator(Spec(arms=4, dim=3, shared=True, layout=Layout()))
    assert evaluator is not None and not evaluator.keeps_contexts
