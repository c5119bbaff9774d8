"""The kernel that reads past contexts once per seed draws as the plain path does, up to rounding.

Kernels are interpreted here; on an accelerator `bench/gpu_logistic.py` makes the same comparison.
"""

import itertools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from grids import covering, slow_but
from proofs.targets import SETTINGS, agent
from shared_contexts import (
    CHAINS,
    FORMS,
    KEYS,
    SEEDS,
    assert_same_draws,
    draw,
    evaluation,
    form_of,
    gaps_between,
    points,
    rows_of,
    shown_to,
    swept,
    with_rounds,
)
from shared_contexts import laid_out as laid_out_anywhere
from triton_calls import triton_calls

from feelgood import AGENTS, TESTBEDS, Spec
from feelgood.agents.thompson import Thompson
from feelgood.targets.evaluators import FullPass, SeedPrograms, seed_programs
from feelgood.targets.losses import loss_for

TILE = seed_programs.SPREAD.tile
#: A store whose last tile is not whole.
ROOM = 512 + TILE // 2


def laid_out(spec: Spec, steps: Any) -> Spec:
    return laid_out_anywhere(spec, steps, reads_all=True)


def gaps(form: str, dim: int, rounds: int, arms: int = 5) -> tuple[float, float, float]:
    """How far value, gradient and value alone are from the plain ones, relative to their size."""
    spec = laid_out(Spec(arms=arms, dim=dim, shared=True), "interpreted")
    shown, bonus, theta = shown_to(spec, rounds, ROOM), form_of(form), points(dim)
    rows, memo = rows_of(spec, shown, rounds), jnp.asarray(np.transpose(shown, (2, 1, 3, 0)))
    found = evaluation()(SeedPrograms(bonus=bonus, spec=spec), memo, rows, theta)
    plain = evaluation()(FullPass(bonus=bonus, spec=spec), (), rows, theta)
    return gaps_between(found, plain, rounds)


CASES = itertools.product(FORMS, (20, 40), (1, TILE, TILE + 1, ROOM))


@pytest.mark.parametrize(("form", "dim", "rounds"), covering(CASES))
def test_the_kernel_has_the_value_and_the_gradient_of_the_plain_path(
    form: str, dim: int, rounds: int
) -> None:
    assert max(gaps(form, dim, rounds)) < 2e-6


@pytest.mark.parametrize("dim", slow_but([33], [1, 16, 17, 33, 64, 100]))
def test_vectors_of_any_length_are_read_in_parts(dim: int) -> None:
    parts = seed_programs.parts_of_vector(dim)
    assert parts[0][0] == 0 and all(n >= 16 and n & (n - 1) == 0 for _, n in parts)
    ends = [start + length for start, length in parts]
    assert ends[:-1] == [start for start, _ in parts[1:]] and ends[-1] >= dim
    assert max(gaps("hard", dim, 100)) < 2e-6


def one_round_less(self: Any, memo: Any, rows: Any, theta: Any, **options: Any) -> Any:
    fewer = eqx.tree_at(lambda r: r.filled, rows, rows.filled - 1)
    return REAL(self, memo, fewer, theta, **options)


def other_seed(self: Any, memo: Any, rows: Any, theta: Any, **options: Any) -> Any:
    return REAL(self, memo[::-1], rows, theta, **options)


def other_arms(self: Any, memo: Any, rows: Any, theta: Any, **options: Any) -> Any:
    return REAL(self, memo[:, :-1], rows, theta, **options)


def last_part_left_out(self: Any, memo: Any, rows: Any, theta: Any, **options: Any) -> Any:
    return REAL(self, memo.at[..., 16:].set(0.0), rows, theta, **options)


REAL = SeedPrograms._sums


@pytest.mark.parametrize("wrong", [one_round_less, other_seed, other_arms, last_part_left_out])
def test_a_wrong_kernel_is_noticed(wrong: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SeedPrograms, "_sums", wrong)
    assert max(gaps("hard", 20, TILE + 1)) > 1e-3


AGENTS_HERE = ("fglmcts", "sfglmcts", "pfglmcts", "psfglmcts", "fgmalats", "released-fgmalats")
DRAWS = list(itertools.product(AGENTS_HERE, ("squared", "bernoulli")))


@pytest.mark.parametrize(
    ("name", "rewards"),
    slow_but([("fglmcts", "bernoulli"), ("released-fgmalats", "squared")], DRAWS),
)
def test_chains_draw_what_they_draw_on_the_plain_path(name: str, rewards: Any) -> None:
    policy = swept(agent(name, **(SETTINGS | {"lam": 0.7, "steps": 3})))
    spec = Spec(arms=4, dim=3, shared=True, rewards=rewards)
    found, begun = [], None
    for steps in ("together", "interpreted"):
        state = with_rounds(policy, laid_out(spec, steps), 150)
        kernel = isinstance(policy._evaluator(state.spec), SeedPrograms)
        assert kernel == (steps == "interpreted") and state.data.rows is not None
        assert (state.data.rows.contexts is None) == kernel, "contexts are kept in one place"
        found.append(draw(policy, state))
        begun = state.chain.theta
    assert_same_draws(*found, begun)


def test_contexts_are_stored_once_per_seed_and_grow_by_themselves() -> None:
    spec = laid_out(Spec(arms=4, dim=3, shared=True), "interpreted")
    policy = agent("fglmcts", lam=0.5)
    state = policy.init(KEYS, spec)
    assert state.chain.memo.shape == (SEEDS, 4, 512, 3)
    context = jnp.arange(12.0 * CHAINS).reshape(3, 4, CHAINS)
    rows = state.data.rows
    full = eqx.tree_at(lambda s: s.data.rows.filled, state, jnp.asarray(512))
    full = policy.update(full, context, jnp.zeros(CHAINS, int), jnp.zeros(CHAINS))
    assert rows is not None and full.chain.memo.shape == (SEEDS, 4, 1024, 3)
    np.testing.assert_array_equal(full.chain.memo[1, :, 512], context[..., 1].T)


@pytest.mark.filterwarnings("ignore:The Pallas Triton backend is deprecated")
@pytest.mark.parametrize(
    ("bed", "name"),
    covering(
        [
            ("logistic-20", "fglmcts"),
            ("logistic-40", "sfglmcts"),
            ("released-logistic-20", "psfglmcts"),
            ("released-logistic-40", "released-sfgmalats"),
        ]
    ),
)
def test_it_has_a_form_in_tritons_own_language(bed: str, name: str) -> None:
    """And with a squared loss, the store need not grow along a run."""
    policy, spec = AGENTS[name].build(), laid_out(TESTBEDS[bed].build().spec, "apart")
    assert isinstance(policy, Thompson)
    assert isinstance(policy._evaluator(spec), SeedPrograms)
    assert policy.hints(spec).grows == (loss_for(policy.likelihood, spec) == "bernoulli")
    state = jax.eval_shape(lambda: policy.init(KEYS, spec))
    traced = jax.jit(lambda state: policy.draw(KEYS, state)).trace(state)
    assert triton_calls(traced) >= 1


@pytest.mark.parametrize(
    ("name", "values"),
    [("fghmcts", {}), ("jfgmalats", {}), ("fglmcts", {"bonus_gradient": "svrg"})],
    ids=["trajectories", "jumps", "estimated"],
)
def test_where_others_read_past_contexts_rows_keep_them(name: str, values: Any) -> None:
    policy = AGENTS[name].build(values)
    spec = laid_out(Spec(arms=4, dim=3, shared=True), "apart")
    assert isinstance(policy, Thompson)
    evaluator = policy._evaluator(spec)
    assert evaluator is not None and not evaluator.keeps_contexts
    assert policy.hints(spec).grows
