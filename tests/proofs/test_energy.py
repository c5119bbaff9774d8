"""The energy and its gradient, in every form the library has, against the formula in float64."""

import dataclasses
import functools
import itertools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from grids import covering, slow_but
from proofs import levels
from proofs.energies import (
    ROUNDING,
    bonus_of,
    energy_checks,
    evaluator_checks,
    points_for,
    svrg_sum_checks,
)
from proofs.levels import require
from proofs.targets import (
    SETTINGS,
    Formula,
    Problem,
    agent,
    flat,
    formula_of,
    learned,
    problem,
    quick_jit,
    strong,
    unflat,
    with_contexts,
)
from rounds import decide

from feelgood import TESTBEDS, Spec
from feelgood.agents.thompson import Thompson, ThompsonState
from feelgood.core.spec import Layout, Likelihood
from feelgood.targets.bonus import FeelGood, SmoothedFeelGood, on_scores
from feelgood.targets.energy import LinearModelTarget
from feelgood.targets.evaluators import Columns, FullPass, Products, Pruned, SeedStrips
from feelgood.targets.evaluators.pruned import CLASSES, Anchored

HARD = [{"b": 0.5}, {"b": 1000.0}]
SMOOTH = [{"b": 0.5, "s": 2.0}, {"b": 3.0, "s": 20.0}]
CONTEXTS, LOSSES = ("disjoint", "shared"), ("squared", "bernoulli")
CAPS: dict[str, list[dict[str, float]]] = {"lmcts": [{}], "fglmcts": HARD, "sfglmcts": SMOOTH}


def spec_of(shared: bool, bernoulli: bool) -> Spec:
    return Spec(arms=3, dim=2, shared=shared, rewards="bernoulli" if bernoulli else "squared")


def case(name: str, shared: bool, bernoulli: bool, **values: Any) -> tuple[Thompson, Problem]:
    """An agent and 40 rounds of data."""
    return agent(name, **(SETTINGS | {"lam": 0.7} | values)), problem(
        spec_of(shared, bernoulli), 40
    )


@pytest.mark.parametrize(
    ("name", "contexts", "loss"), covering(itertools.product(CAPS, CONTEXTS, LOSSES))
)
def test_value_and_gradient(name: str, contexts: str, loss: str) -> None:
    shared, bernoulli = contexts == "shared", loss == "bernoulli"
    policy, data = case(name, shared, bernoulli)
    require(energy_checks(policy, data, f"{name} {shared} {bernoulli}", CAPS[name]))


#: Other bonuses than the default: on the score, and with weights that follow a schedule.
FORMS: dict[str, dict[str, Any]] = {
    "on scores": {"bonus_on": "score"},
    "sqrt": {"lam_schedule": "sqrt"},
    "prior mass": {"lam_schedule": "prior-mass", "prior_mass": 0.02, "horizon": 30.0},
}


@pytest.mark.parametrize(
    ("name", "form", "contexts", "loss"),
    covering(itertools.product(("fglmcts", "sfglmcts"), FORMS, CONTEXTS, LOSSES)),
)
def test_value_and_gradient_of_other_bonuses(
    name: str, form: str, contexts: str, loss: str
) -> None:
    shared, bernoulli = contexts == "shared", loss == "bernoulli"
    policy, data = case(name, shared, bernoulli, **FORMS[form])
    require(energy_checks(policy, data, f"{name} {form} {shared} {bernoulli}", CAPS[name]))


@quick_jit
def evaluate(target: LinearModelTarget, theta: Any, memo: Any, luck: Any) -> Any:
    return target.evaluate(theta, memo, luck)


@pytest.mark.slow
@pytest.mark.parametrize(
    "shared",
    [pytest.param(False, id="disjoint"), pytest.param(True, id="shared")],
)
def test_many_arms_and_dimensions(shared: bool) -> None:
    """Above some sizes the same mathematics is computed by other means."""
    rewards: Likelihood = "bernoulli" if shared else "squared"
    spec = Spec(arms=20, dim=12 if shared else 2, shared=shared, rewards=rewards)
    policy = agent("fglmcts", **(SETTINGS | {"lam": 0.7, "b": 1.5}))
    data = problem(spec, 40)
    require(energy_checks(policy, data, f"many {shared}", HARD))
    formula = formula_of(policy, data)
    points = points_for([formula], f"many, one chain {shared}", 6)
    alone = Measured.of(policy, data, points)
    size, steep = formula.size(points) + formula.size(points[:1]), formula.gradient_size(points)
    rise, gradients = formula.value(points) - formula.value(points[:1]), formula.gradient(points)
    require(
        [
            levels.close("value", alone.rise, rise, ROUNDING * size),
            levels.close("gradient", alone.gradients, gradients, ROUNDING * steep[:, None]),
        ]
    )


class Measured(eqx.Module):
    """Values, relative to the first point, and gradients of one chain's target at many points."""

    rise: np.ndarray
    gradients: np.ndarray

    @classmethod
    def of(cls, policy: Thompson, data: Problem, points: np.ndarray) -> "Measured":
        state = learned(policy, data)
        origin = unflat(points[0], data.spec)
        target = LinearModelTarget.of(policy.energy(state.spec), state.data, origin)
        memo = target.begin(state.chain.memo, origin)
        values, gradients = [], []
        for point in points:
            value, gradient, memo = evaluate(
                target, unflat(point, data.spec), memo, jnp.zeros((0,))
            )
            values.append(float(value))
            gradients.append(flat(gradient))
        return cls(np.array(values) - values[0], np.array(gradients))


@pytest.mark.slow
@pytest.mark.parametrize(("contexts", "loss"), covering(itertools.product(CONTEXTS, LOSSES)))
def test_order_of_rounds_does_not_matter(contexts: str, loss: str) -> None:
    """One chain: its bonus is pruned where parameters are disjoint, a full pass where shared."""
    shared, bernoulli = contexts == "shared", loss == "bernoulli"
    policy, data = case("sfglmcts", shared, bernoulli, b=0.5, s=2.0)
    formula = formula_of(policy, data)
    points = points_for([formula], f"order {shared} {bernoulli}", 6)
    order = levels.generator_for("order").permutation(data.rounds)
    here = Measured.of(policy, data, points)
    there = Measured.of(policy, data.taking(order), points)
    size, steep = formula.size(points) + formula.size(points[:1]), formula.gradient_size(points)
    want = formula.value(points) - formula.value(points[:1])
    require(
        [
            levels.close("value", here.rise, there.rise, ROUNDING * size),
            levels.close("gradient", here.gradients, there.gradients, ROUNDING * steep[:, None]),
            levels.close("formula's value", here.rise, want, ROUNDING * size),
        ]
    )


@pytest.mark.parametrize(
    "shared",
    [pytest.param(False, id="disjoint"), pytest.param(True, id="shared", marks=pytest.mark.slow)],
)
def test_sufficient_statistics_equal_the_history(shared: bool) -> None:
    """SVRG with small batches keeps both: sums over the history must be as by Gram and moment."""
    policy, data = case("svrglmcts", shared, bernoulli=False, batch=1)
    formula = formula_of(policy, data)
    points = points_for([formula], f"statistics {shared}", 32)
    state = learned(policy, data, len(points))
    origin = np.broadcast_to(points[:1], points.shape)
    target = LinearModelTarget.of(policy.energy(state.spec), state.data, unflat(origin, data.spec))
    rows, theta = state.data.rows, unflat(points, data.spec)
    assert rows is not None
    here, slope = rows.total(target.energy.rows_loss, theta)
    there, _ = rows.total(target.energy.rows_loss, unflat(origin, data.spec))
    squares = formula.rho * (np.sum(points**2, axis=1) - np.sum(origin**2, axis=1))
    rise = formula.eta * np.asarray(here - there, np.float64) + squares
    gradient = formula.eta * flat(slope) + 2.0 * formula.rho * points
    no_luck = jnp.zeros((0, len(points)))
    value, by_statistics, _ = target.evaluate(theta, state.chain.memo, no_luck)
    size, steep = formula.size(points) + formula.size(origin), formula.gradient_size(points)
    require(
        [
            levels.close("value", value, rise, ROUNDING * size),
            levels.close("gradient", flat(by_statistics), gradient, ROUNDING * steep[:, None]),
        ]
    )


# ---- estimates from batches -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("contexts", "loss", "batch"), covering(itertools.product(CONTEXTS, LOSSES, (7, 1)))
)
def test_svrg_estimates_sum_to_the_full_gradient(contexts: str, loss: str, batch: int) -> None:
    """7 rounds per batch; the last batch is longer, and the squared loss has its Σ x xᵀ at hand."""
    shared, bernoulli = contexts == "shared", loss == "bernoulli"
    require(svrg_sum_checks("svrgfglmcts", shared, bernoulli, batch))


def bonus_estimates(
    data: Problem, batch: int, luck: jax.Array, label: str, **form: Any
) -> tuple[Any, ...]:
    """Estimates of ∇L with `bonus_gradient = "svrg"`, one per chain, and the truth."""
    values = SETTINGS | {"lam": 0.7, "b": 0.5, "bonus_gradient": "svrg", "bonus_batch": batch}
    policy = agent("fglmcts", **(values | form))
    formula = formula_of(policy, data)
    start, point = points_for([formula], label, 2)
    chains = luck.shape[-1]
    state = learned(policy, data, chains)
    first, theta = (unflat(np.broadcast_to(v, (chains, len(v))), data.spec) for v in (start, point))
    target = LinearModelTarget.of(policy.energy(state.spec), state.data, first)
    memo = quick_jit(LinearModelTarget.begin)(target, state.chain.memo, first)
    _, gradient, _ = evaluate(target, theta, memo, luck)
    return flat(gradient), formula.gradient(point), float(formula.gradient_size(point[None])[0])


@pytest.mark.parametrize(
    ("contexts", "loss", "schedule"),
    covering(itertools.product(CONTEXTS, LOSSES, ("constant", "sqrt"))),
)
def test_subsampled_bonus_sums_to_the_full_gradient(
    contexts: str, loss: str, schedule: str
) -> None:
    data = problem(spec_of(contexts == "shared", loss == "bernoulli"), 40)
    luck = (jnp.arange(40)[None] + 0.5) / 40
    label = f"subsampled {contexts} {loss} {schedule}"
    estimates, truth, steep = bonus_estimates(data, 1, luck, label, lam_schedule=schedule)
    error = levels.close("mean", estimates.mean(axis=0), truth, 40 * ROUNDING * steep)
    require([error, levels.close("they differ", min(1.0, np.std(estimates)), 1.0, 0.99)])


@pytest.mark.slow
def test_subsampled_bonus_is_unbiased() -> None:
    """Batches of several rounds; those of one are summed above."""
    data = problem(spec_of(shared=False, bernoulli=False), 40)
    luck = jax.random.uniform(levels.key_for("subsampled"), (1, 20_000))
    estimates, truth, _ = bonus_estimates(data, 4, luck, "subsampled")
    require(
        [
            levels.mean_is(f"subsampled, gradient {i}", estimates[:, i], truth[i])
            for i in range(len(truth))
        ]
    )


# ---- other ways to evaluate the bonus -------------------------------------------------------


def play(policy: Thompson, key: Any, contexts: Any, rewards: Any, carry: Any, window: Any) -> Any:
    """Rounds `window[0]` to `window[1]` of one chain; `carry` is its state and the arms played."""

    def one(t: Any, carry: Any) -> Any:
        state, arms = carry
        arm, state = decide(policy, state.spec, jax.random.fold_in(key, t), state, contexts[t])
        state = policy.update(state, contexts[t], arm, rewards[t, arm])
        return state, arms.at[t].set(arm)

    return jax.lax.fori_loop(window[0], window[1], one, carry)


play_compiled = quick_jit(play)


def played_so_far(
    policy: Thompson,
    rounds: int,
    stops: list[int],
    bandit: str = "linear-20",
    player: Any = play_compiled,
) -> list[tuple[ThompsonState, Problem]]:
    """A real run of one chain, as it is after some of its rounds."""
    testbed = TESTBEDS[bandit].build()
    key, fixed, see, luck = jax.random.split(levels.key_for("run"), 4)
    truth, turns = testbed.init(fixed), jnp.arange(rounds)
    contexts = jax.vmap(testbed.context, (0, None, 0))(jax.random.split(see, rounds), truth, turns)
    means = jax.vmap(testbed.mean_rewards, (None, 0, 0))(truth, contexts, turns)
    rewards = jax.vmap(testbed.rewards, (0, None, 0))(jax.random.split(luck, rounds), truth, means)

    state = policy.reserve(policy.init(key, testbed.spec), rounds)
    arms = jnp.zeros(rounds, jnp.int32)
    out, first = [], 0
    for stop in stops:
        window = (jnp.asarray(first), jnp.asarray(stop))
        state, arms = player(policy, key, contexts, rewards, strong((state, arms)), window)
        played = np.asarray(arms[:stop])
        paid = np.asarray(rewards)[np.arange(stop), played]
        out.append((state, Problem(testbed.spec, np.asarray(contexts)[:stop], played, paid)))
        first = stop
    return out


@functools.cache
def run_of(
    name: str, b: float, schedule: str = "constant"
) -> tuple[Thompson, list[tuple[ThompsonState, Problem]]]:
    """An agent and its run of 3000 rounds at three of them."""
    policy = agent(name, lam=0.5, b=b, s=50.0, steps=10, lam_schedule=schedule)
    return policy, played_so_far(policy, 3000, [300, 1100, 3000])


@quick_jit
def evaluate_bonus(evaluator: Any, memo: Any, rows: Any, theta: Any) -> Any:
    return evaluator.evaluate(memo, rows, theta, jnp.zeros(0))


@quick_jit
def anchored(evaluator: Pruned, memo: Anchored, rows: Any) -> Anchored:
    return evaluator.anchored(memo, rows)


def pruned_checks(
    evaluator: Any, memo: Anchored, state: ThompsonState, formula: Formula, label: str
) -> list[levels.Check]:
    """The pruned bonus near the chain's θ, far from it and back, and the full pass too."""
    seen, rows = formula.problem, state.data.rows
    centre = flat(state.chain.theta)
    scales = np.repeat([0.001, 0.003, 0.01, 0.03, 1.0, 30.0, 0.003, 0.01], 8)[:, None]
    moves = levels.generator_for(label).normal(size=(len(scales), len(centre)))
    points = (centre + scales * moves).astype(np.float32).astype(np.float64)
    # Where two arms are level to float32 accuracy, either one is right.
    points = points[bonus_of(formula, points)[2] > 1e-5 * (1.0 + scales[:, 0])]
    assert len(points) > 32
    assert isinstance(evaluator, Pruned) and rows is not None
    checks, _ = evaluator_checks(evaluator, rows, memo, formula, points, label)
    # Also from an anchor here, so that the points are in all of its classes and beyond.
    narrow = memo._replace(centre=state.chain.theta, spread=jnp.full(seen.spec.arms, 0.01**2))
    again = anchored(evaluator, narrow, rows)
    classes = int(jnp.sum(jnp.diff(again.starts) > 0))
    assert classes > CLASSES / 2 or float(evaluator.bonus.bend()) > 1, "there are few classes"
    more, _ = evaluator_checks(evaluator, rows, again, formula, points, f"{label}, again")
    checks += more
    whole = FullPass(bonus=evaluator.bonus, spec=seen.spec)
    more, _ = evaluator_checks(whole, rows, (), formula, points, f"{label}, full pass")
    return checks + more


@pytest.mark.parametrize(
    ("name", "b", "schedule"),
    slow_but(
        [("fglmcts", 2.0, "sqrt")],
        itertools.product(("fglmcts", "sfglmcts"), (2.0, 1000.0), ("constant", "sqrt")),
    ),
)
def test_pruned_bonus_equals_the_full_pass_along_a_run(name: str, b: float, schedule: str) -> None:
    """From the memo that the run has, whether the cap binds or not."""
    pruned = 0
    policy, stops = run_of(name, b, schedule)
    for state, seen in stops:
        evaluator, memo = policy.energy(state.spec).bonus, state.chain.memo
        pruned += float(memo.rate) < 0.6 * seen.rounds
        label = f"pruned {name} {b} {schedule} {seen.rounds}"
        require(pruned_checks(evaluator, memo, state, formula_of(policy, seen), label))
    assert pruned, "nothing was pruned: the comparison is empty"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "b", "loss"),
    list(itertools.product(("fglmcts", "sfglmcts"), (0.6, 1000.0), LOSSES)),
)
def test_strips_equal_the_full_pass_along_a_run(name: str, b: float, loss: str) -> None:
    """Where arms share parameters; from the memo that the run has, near the chain and far."""
    values = {"lam": 0.5, "b": b, "s": 50.0, "steps": 5, "lam_schedule": "sqrt", "step": 0.05}
    policy = agent(name, likelihood=loss, **values)
    kept = 0
    for state, seen in played_so_far(policy, 900, [300, 900], "logistic-20"):
        evaluator, memo, rows = policy.energy(state.spec).bonus, state.chain.memo, state.data.rows
        assert isinstance(evaluator, SeedStrips) and rows is not None
        whole, every = FullPass(bonus=evaluator.bonus, spec=state.spec), with_contexts(rows, seen)
        rng, checks = levels.generator_for(f"strips {name} {b} {loss} {seen.rounds}"), []
        shown = np.swapaxes(seen.contexts.astype(np.float64), 1, 2)
        for scale in np.repeat([1e-4, 1e-3, 1e-2, 1.0, 30.0, 1e-3], 3):
            move = jnp.asarray(rng.normal(size=state.chain.theta.shape), jnp.float32)
            theta, before = state.chain.theta + scale * move, memo
            best, second = np.sort(shown @ np.asarray(theta[:, 0], np.float64), axis=1)[:, :-3:-1].T
            if np.min(best - second) < 1e-6 * (1.0 + np.linalg.norm(theta)):
                continue  # where two arms are level to float32 accuracy, either one is right
            value, gradient, memo = evaluate_bonus(evaluator, memo, rows, theta)
            want, slope, _ = evaluate_bonus(whole, (), every, theta)
            size = seen.rounds * (1.0 + float(jnp.linalg.norm(theta)))
            checks.append(levels.close("value", value, want, ROUNDING * size))
            checks.append(levels.close("gradient", gradient, slope, ROUNDING * seen.rounds))
            kept += int(jnp.sum(memo.found.anchors == before.found.anchors)) > 0
        require(checks)
    assert kept > 6, "strips were read at every point: the comparison is empty"


@pytest.mark.slow
@pytest.mark.parametrize("s", slow_but((3.0,), (3.0, 50.0)))
def test_pruned_smoothed_bonus_equals_the_full_pass(s: float) -> None:
    """Over the histories of a run with the hard cap, with nothing settled before."""
    _, stops = run_of("fglmcts", 2.0)
    policy = agent("sfglmcts", lam=0.5, b=2.0, s=s)
    for state, seen in stops:
        evaluator = policy.energy(seen.spec).bonus
        assert evaluator is not None
        memo = anchored(evaluator, evaluator.reserve(evaluator.init(), 3000), state.data.rows)
        label = f"pruned {s} {seen.rounds}"
        require(pruned_checks(evaluator, memo, state, formula_of(policy, seen), label))


@pytest.mark.slow
@pytest.mark.parametrize("arms", slow_but((50,), (3, 17, 50)))
def test_the_value_alone_is_that_of_the_evaluation(arms: int) -> None:
    """However many arms: many are folded before the largest score is looked for."""
    data = problem(Spec(arms=arms, dim=3, shared=True, rewards="squared"), 40)
    policy = agent("sfglmcts", lam=0.5, b=0.5, s=3.0)
    formula = formula_of(policy, data)
    points = points_for([formula], f"value alone {arms}", 5)
    state = learned(policy, data, len(points))
    assert state.data.rows is not None and policy.bonus is not None
    rows = with_contexts(state.data.rows, data)
    evaluator = FullPass(bonus=policy.bonus, spec=data.spec)
    theta, no_luck = unflat(points, data.spec), jnp.zeros((0, len(points)))
    value, _, _ = evaluator.evaluate((), rows, theta, no_luck)
    alone, _ = evaluator.value((), rows, theta, no_luck)
    require([levels.close("value", alone, value, ROUNDING * formula.size(points))])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("bandit", "name"), [("linear-20", "fghmcts"), ("logistic-20", "sfghmcts")]
)
def test_a_hopeless_trajectory_is_rejected_as_with_the_bonus(
    bandit: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step that becomes too long after some rounds: the same run as with the exact energy."""
    settings = {"lam": 0.5, "b": 2.0, "s": 20.0, "steps": 4, "leapfrog": 6, "step": 0.1}
    settings |= {"schedule": "constant", "beta": 1.0, "eta": 10.0, "likelihood": "squared"}
    policy = agent(name, **settings)
    with_bounds = played_so_far(policy, 400, [10, 400], bandit)

    def exact(target: LinearModelTarget, theta: Any, memo: Any, luck: Any, suffices: Any) -> Any:
        del suffices
        return target.value(theta, memo, luck)

    monkeypatch.setattr(LinearModelTarget, "value_or_bound", exact)
    afresh = quick_jit(functools.partial(play))  # traced again, with what is patched
    without = played_so_far(policy, 400, [10, 400], bandit, afresh)
    for (state, seen), (other, same) in zip(with_bounds, without, strict=True):
        assert np.array_equal(seen.arms, same.arms)
        for one, two in zip(jax.tree.leaves(state.info), jax.tree.leaves(other.info), strict=True):
            assert np.array_equal(one, two)
    assert float(with_bounds[0][0].info.acceptance) > 0.2
    assert float(with_bounds[1][0].info.divergences) > 0.5, "no trajectory was hopeless"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("contexts", "name", "loss", "schedule"),
    covering(
        itertools.product(CONTEXTS, ("fghmcts", "sfghmcts"), LOSSES, ("constant", "sqrt")),
    ),
)
def test_the_cheap_bound_is_below_the_energy(
    contexts: str, name: str, loss: str, schedule: str
) -> None:
    shared = contexts == "shared"
    policy, data = case(name, shared, loss == "bernoulli", b=0.5, lam_schedule=schedule)
    formula = formula_of(policy, data)
    points = points_for([formula], f"bound {name} {shared} {loss} {schedule}", 12)
    state = learned(policy, data, len(points))
    target = LinearModelTarget.of(policy.energy(state.spec), state.data, state.chain.theta)
    theta, no_luck = unflat(points, data.spec), jnp.zeros((0, len(points)))

    def answer(enough: bool) -> np.ndarray:
        def suffices(least: jax.Array) -> jax.Array:
            return jnp.full(least.shape, enough)

        value, _ = target.value_or_bound(theta, state.chain.memo, no_luck, suffices)
        return np.asarray(value)

    exact, _ = target.value(theta, state.chain.memo, no_luck)
    size = ROUNDING * formula.size(points)
    require([levels.close("value", answer(enough=False), exact, size)])
    # Where the cap binds in all rounds, the bound is the energy itself.
    below = np.asarray(exact) - answer(enough=True)
    assert np.all(below > -size) and np.any(below > size)


@pytest.mark.parametrize(
    ("layout", "kind"),
    covering(itertools.product((Columns, Products), ("hard", "smoothed", "sqrt", "linked"))),
)
def test_layouts_of_the_accelerator_equal_the_full_pass(layout: Any, kind: str) -> None:
    """Two settings share each seed's contexts."""
    smooth, loss = kind == "smoothed", "bernoulli" if kind == "linked" else "squared"
    data = problem(spec_of(layout is Products, kind == "linked"), 40)
    form = {"lam_schedule": "sqrt" if kind == "sqrt" else "constant"}
    cap = (SMOOTH if smooth else HARD)[0]
    policy = agent("sfglmcts" if smooth else "fglmcts", lam=0.5, **cap, **form)
    formula = dataclasses.replace(formula_of(policy, data), eta=0.0, rho=0.0)
    both = [dataclasses.replace(formula, b=cap) for cap in (0.5, 1.5)]
    points = points_for(both, f"{layout.__name__} {kind}", 6)
    state = learned(policy, data, len(points))
    assert state.data.rows is not None and policy.bonus is not None
    rows = with_contexts(state.data.rows, data)
    caps = jnp.repeat(jnp.asarray([0.5, 1.5]), 3)
    made_of: Any = SmoothedFeelGood if smooth else FeelGood
    shape = {"s": jnp.asarray(2.0)} if smooth else {}
    together = Layout(chains=len(points), settings=2, reads_all=True)
    spec = dataclasses.replace(data.spec, layout=together)
    bonus = made_of(lam=jnp.asarray(0.5), b=caps, **shape, **form)
    evaluator = layout(bonus=on_scores(bonus, loss), spec=spec)
    theta, no_luck = unflat(points, data.spec), jnp.zeros((0, len(points)))
    memo = evaluator.begin(evaluator.init(), rows, theta)
    value, gradient, _ = evaluator.evaluate(memo, rows, theta, no_luck)
    alone, _ = evaluator.value(memo, rows, theta, no_luck)
    checks = []
    for k, cap in enumerate((0.5, 1.5)):
        one = dataclasses.replace(formula, b=cap)
        part = slice(3 * k, 3 * k + 3)
        want = one.value(points[part])
        got = -0.5 * np.asarray(value)[part]
        checks.append(levels.close("value", got, want, ROUNDING * one.size(points[part])))
        got = -0.5 * np.asarray(alone)[part]
        checks.append(levels.close("alone", got, want, ROUNDING * one.size(points[part])))
        steep = one.gradient_size(points[part])[:, None]
        slopes = one.gradient(points[part])
        checks.append(
            levels.close("gradient", -0.5 * flat(gradient)[part], slopes, ROUNDING * steep)
        )
    require(checks)


@pytest.mark.parametrize(
    ("contexts", "schedule"),
    slow_but(
        [("disjoint", "constant"), ("shared", "sqrt")],
        itertools.product(CONTEXTS, ("constant", "sqrt")),
    ),
)
def test_frozen_force_is_the_gradient_where_the_arms_are_the_same(
    contexts: str, schedule: str
) -> None:
    """Near the mode the cheap force of HMC is ∇L; elsewhere the exact energy makes up for it."""
    shared = contexts == "shared"
    policy, data = case("fghmcts", shared, bernoulli=False, b=1000.0, lam_schedule=schedule)
    formula = formula_of(policy, data)
    state = learned(policy, data, 1)
    energy = policy.energy(state.spec)
    freeze = quick_jit(lambda p, s, e: p._frozen(s, e))
    for _ in range(20):
        frozen, mode = freeze(policy, state, energy)
        state = eqx.tree_at(lambda s: s.mode, state, mode)
    assert state.mode is not None and frozen is not None
    theta = state.mode.theta
    point = flat(theta)
    assert formula.corner_distance(point)[0] > 1e-4
    target = LinearModelTarget.of(energy, state.data, theta, frozen)
    steep = formula.gradient_size(point)[:, None]
    require(
        [
            levels.close(
                "force",
                flat(target.follow_surrogate(lambda force: force(theta))),
                formula.gradient(point),
                ROUNDING * steep,
            ),
            levels.close("mode", formula.gradient(point), 0.0, 1e-4 * steep),
        ]
    )
