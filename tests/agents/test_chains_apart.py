"""Chains that have a program each draw and play as all chains together do, up to rounding.

Programs are interpreted here; on an accelerator `bench/gpu_sweep.py` makes the same comparison.
"""

import dataclasses
import functools
from collections import OrderedDict
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from grids import covering, slow_but
from proofs.targets import SETTINGS, agent, parts_of, quick_jit
from triton_calls import triton_calls

from feelgood import AGENTS, TESTBEDS, Spec
from feelgood.agents import grammar
from feelgood.agents.grammar import all_names
from feelgood.agents.thompson import Thompson, ThompsonState
from feelgood.core.notices import print_notice
from feelgood.core.spec import Layout
from feelgood.engine import compiling, device, plan
from feelgood.engine.simulation import Outcome, simulate
from feelgood.numerics import generator, written_out
from feelgood.numerics.keys import LaneKeys
from feelgood.samplers.blocks import Kernel
from feelgood.targets import energy
from feelgood.testbeds.linear import Linear


def kernel_of(name: str) -> type[Kernel]:
    parts = grammar.parts_of(name)
    assert parts is not None
    return parts.kernel


#: Jumps between modes look into the whole history, for which programs have no form.
AGENTS_APART = [n for n in all_names() if not kernel_of(n).jumps]

SEEDS, SWEPT = 2, 2
CHAINS = SEEDS * SWEPT
KEYS = LaneKeys(keys=jax.vmap(generator.key)(jnp.arange(SEEDS)), settings=SWEPT)


def with_rounds(policy: Thompson, spec: Spec, rounds: int) -> ThompsonState:
    """A sweep's chains after some rounds; settings share their seed's contexts."""
    rng = np.random.default_rng(rounds)
    contexts = np.tile(rng.normal(size=(rounds, *spec.context_shape, SEEDS)), SWEPT)
    arms = rng.integers(0, spec.arms, (rounds, CHAINS))
    rewards = rng.normal(size=(rounds, CHAINS))
    data = [jnp.asarray(x, jnp.float32) for x in (contexts, rewards)]

    @quick_jit
    def learn(policy: Thompson, data: Any) -> Any:
        state = policy.reserve(policy.init(KEYS, spec), 600)

        def one(t: Any, state: Any) -> Any:
            return policy.update(state, data[0][t], jnp.asarray(arms)[t], data[1][t])

        return jax.lax.fori_loop(0, rounds, one, state)

    return learn(policy, data)


def draw(policy: Thompson, state: Any) -> Any:
    return policy.draw(KEYS, state)


def laid_out(spec: Spec, steps: Any) -> Spec:
    layout = Layout(chains=CHAINS, settings=SWEPT, reads_all=True, steps=steps)
    return dataclasses.replace(spec, layout=layout)


def by_chain(policy: Thompson) -> Thompson:
    """A sweep over the cap and the step, where the agent has them."""
    values = jnp.repeat(jnp.asarray([0.5, 1.5]), SEEDS)
    policy = dataclasses.replace(policy, step=policy.step * values)
    if policy.bonus is None:
        return policy
    return dataclasses.replace(policy, bonus=dataclasses.replace(policy.bonus, b=values))


def require_the_same_draws(policy: Thompson, spec: Spec, rounds: int) -> None:
    found = []
    for steps in ("together", "interpreted"):
        state = with_rounds(policy, laid_out(spec, steps), rounds)
        found.append(quick_jit(draw)(policy, state))
    together, apart = found
    moved = np.abs(together.chain.theta - state.chain.theta)
    assert np.all(moved.max(axis=(0, 1)) > 1e-3), "nothing was drawn"
    leaves = zip(
        jax.tree.leaves((together.chain, together.info)),
        jax.tree.leaves((apart.chain, apart.info)),
        strict=True,
    )
    for one, other in leaves:
        size = max(1.0, float(np.abs(one).max()))
        np.testing.assert_allclose(other, one, rtol=2e-5, atol=2e-5 * size)


@pytest.mark.parametrize("name", slow_but(["fglmcts", "sfgmalats"], AGENTS_APART))
def test_a_program_draws_what_all_chains_draw_together(name: str) -> None:
    policy = agent(name, **(SETTINGS | {"lam": 0.7, "steps": 3}))
    require_the_same_draws(by_chain(policy), Spec(arms=3, dim=2), rounds=40)


CASES = [("linear-20", "fglmcts", "sqrt", 300), ("linear-40", "fglmcts", "constant", 270)]
CASES += [("linear-20", "sfglmcts", "constant", 520), ("linear-40", "sfglmcts", "prior-mass", 1)]


@pytest.mark.parametrize(("bed", "name", "schedule", "rounds"), slow_but([], CASES))
def test_on_the_papers_problems_with_stores_filled_in_part(
    bed: str, name: str, schedule: str, rounds: int
) -> None:
    policy = agent(name, **(SETTINGS | {"lam": 0.5, "steps": 2, "lam_schedule": schedule}))
    require_the_same_draws(by_chain(policy), TESTBEDS[bed].build().spec, rounds)


def traced_draw(policy: Thompson, spec: Spec) -> Any:
    state = jax.eval_shape(lambda: policy.init(KEYS, spec))
    return jax.jit(lambda state: policy.draw(KEYS, state)).trace(state)


@pytest.mark.filterwarnings("ignore:The Pallas Triton backend is deprecated")
@pytest.mark.parametrize("name", covering(AGENTS_APART, parts_of))
def test_every_agent_of_the_grammar_has_programs_and_a_store_that_need_not_grow(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also as Triton's own language: every operation has a form there, and it is one kernel."""
    policy, spec = AGENTS[name].build(), laid_out(TESTBEDS["linear-20"].build().spec, "apart")
    assert isinstance(policy, Thompson)
    assert not policy.hints(spec).grows
    traced = traced_draw(policy, spec)
    assert "pallas_call" in str(traced.jaxpr)
    assert triton_calls(traced) == 1
    assert not capsys.readouterr().err


def test_an_operation_without_a_rule_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Once, with the reason, and the chains are stepped together."""
    monkeypatch.setattr(written_out, "ELEMENTWISE", written_out.ELEMENTWISE - {"mul"})
    monkeypatch.setattr(energy, "print_notice_once", functools.cache(print_notice))
    policy, spec = AGENTS["fglmcts"].build(), laid_out(TESTBEDS["linear-20"].build().spec, "apart")
    assert isinstance(policy, Thompson)
    for _ in range(2):
        assert "pallas_call" not in str(traced_draw(policy, spec).jaxpr)
    told = capsys.readouterr().err
    assert told.count("\n") == 1 and "the operation mul, with JAX" in told


@pytest.mark.parametrize(
    ("name", "spec", "values"),
    [
        ("lmcts", Spec(arms=4, dim=3, rewards="bernoulli"), {}),
        ("fglmcts", Spec(arms=4, dim=30), {}),
        ("fglmcts", Spec(arms=4, dim=3), {"bonus_gradient": "svrg"}),
        ("jfgmalats", Spec(arms=4, dim=3), {}),
    ],
    ids=["bernoulli", "many parameters", "estimated", "jumps"],
)
def test_others_are_played_together(
    name: str, spec: Spec, values: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    policy, spec = AGENTS[name].build(values), laid_out(spec, "apart")
    assert isinstance(policy, Thompson)
    assert "pallas_call" not in str(traced_draw(policy, spec).jaxpr)
    assert policy.hints(spec).grows
    assert not capsys.readouterr().err, "it is meant so"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["fglmcts", "sfgmalats"])
def test_a_run_plays_the_same_arms(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Up to rounding, which is too small to change a choice in so few rounds."""
    policies = [AGENTS[name].build({"lam": lam, "b": 0.3, "steps": 5}) for lam in (0.1, 0.5)]
    monkeypatch.setattr(device, "on_accelerator", lambda: True)
    real = plan.layout_of

    def play(steps: Any) -> Outcome:
        def layout_of(chains: int, settings: int) -> Layout:
            return dataclasses.replace(real(chains, settings), steps=steps)

        monkeypatch.setattr(plan, "layout_of", layout_of)
        monkeypatch.setattr(compiling, "_programs", OrderedDict())
        return simulate(Linear(parameters=6, arms=3), policies, rounds=60, seeds=[3, 4, 5])

    together, apart = play("together"), play("interpreted")
    np.testing.assert_array_equal(apart.arm_counts, together.arm_counts)
    np.testing.assert_allclose(apart.final_regret, together.final_regret, rtol=1e-5)
    np.testing.assert_allclose(apart.ess, together.ess, rtol=1e-2)
