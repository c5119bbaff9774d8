"""The plan of a run: what the device, the memory and the agent's hints decide."""

import functools
import itertools
from collections.abc import Callable
from typing import Literal

import jax.numpy as jnp
import pytest
from toys import Biased, Coins

from feelgood import AGENTS, TESTBEDS, FeelgoodError, Policy
from feelgood.core.policy import Needs
from feelgood.core.spec import Layout
from feelgood.engine import device
from feelgood.engine.plan import (
    GROWTH_STEPS,
    Plan,
    chain_bytes,
    chains_that_fit,
    laid_out,
    layout_of,
    make_plan,
    on_cores,
    that_fit,
)
from feelgood.numerics.chi_square import NORMALS
from feelgood.testbeds import Linear

TINY = Linear(parameters=6, arms=3)


def plan_of(
    policy: Policy,
    settings: int = 1,
    seeds: int = 4,
    rounds: int = 5000,
    notify: Callable[[str], None] = lambda sentence: None,
) -> Plan:
    sizes = {"settings": settings, "seeds": seeds, "rounds": rounds, "workers": 2}
    return make_plan(policy, TINY, **sizes, notify=notify)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("company", "settings", "seeds", "largest"),
    [
        *[("none", 2, 3, 1), ("none", 1, 20, 1)],
        *[("any", 3, 20, 30), ("any", 20, 1, 10), ("any", 1, 20, 10)],
        *[("seed", 3, 20, 3), ("seed", 20, 1, 10), ("seed", 1, 20, 1)],
    ],
)
def test_no_program_holds_more_chains_than_the_agent_wants(
    company: Literal["any", "seed", "none"], settings: int, seeds: int, largest: int
) -> None:
    groups, workers = on_cores(company, 1, None, settings, seeds, 2, lambda sentence: None)
    assert workers == 2
    assert max(len(g.settings) * len(g.seeds) for g in groups) == largest
    every = {(g, n) for group in groups for g in group.settings for n in group.seeds}
    assert every == {(g, n) for g in range(settings) for n in range(seeds)}


def test_chains_that_do_not_fit_run_in_parts() -> None:
    heard: list[str] = []
    split = functools.partial(that_fit, notify=heard.append)
    assert len(split(100, None, 4, 5)) == 1
    assert len(split(100, 2000, 4, 5)) == 1
    assert not heard
    groups = split(100, 1000, 4, 5)
    assert [len(g.settings) * len(g.seeds) for g in groups] == [8, 8, 8]
    assert "running them in 3 parts of 8" in heard[0]
    assert sorted({(g, n) for group in groups for g in group.settings for n in group.seeds}) == [
        *itertools.product(range(4), range(5))
    ]
    assert all(len(g.settings) * len(g.seeds) <= 3 for g in split(100, 300, 4, 5))
    with pytest.raises(FeelgoodError, match="use narrower layers"):
        chains_that_fit(100, 5, 99)


def test_on_a_processor_threads_share_the_chains_and_room_is_made_at_once() -> None:
    plan = plan_of(AGENTS["lmcts"].build(), settings=2, seeds=4)
    assert plan.workers == 2 and len(plan.groups) == 2
    assert plan.spec.layout == Layout(chains=4, settings=2)
    assert plan.spec.lanes == (4,) and TINY.spec.lanes == ()
    assert plan.room_at_once and plan.room(0, 5000) == 5000


def test_chains_that_want_to_be_alone_have_no_lanes() -> None:
    plan = plan_of(AGENTS["fglmcts"].build(), settings=2, seeds=3)
    assert len(plan.groups) == 6 and plan.spec.lanes == ()


@pytest.mark.parametrize(("name", "grows"), [("lmcts", True), ("lints", False)])
def test_an_accelerator_plays_all_chains_together_and_its_stores_grow(
    name: str, grows: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device, "on_accelerator", lambda: True)
    monkeypatch.setattr(device, "memory_limit", lambda: None)
    plan = plan_of(AGENTS[name].build(), settings=2, seeds=4)
    assert plan.workers == 1 and len(plan.groups) == 1
    assert plan.spec.layout == Layout(chains=8, settings=2, reads_all=True, unroll=5)
    assert plan.room_at_once is not grows
    if grows:
        assert plan.block <= 5000 // GROWTH_STEPS
        assert plan.room(plan.block, 5000) == 2 * plan.block


@pytest.mark.parametrize(("name", "groups"), [("lmcts", 2), ("lints", 1)])
def test_a_store_that_grows_needs_more_room(
    name: str, groups: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory for all chains and half as much again: not enough where stores are copied."""
    agent = AGENTS[name].build()
    size = chain_bytes(agent, TINY.spec, 5000)
    monkeypatch.setattr(device, "on_accelerator", lambda: True)
    monkeypatch.setattr(device, "memory_limit", lambda: 12 * size)
    assert len(plan_of(agent, settings=2, seeds=4).groups) == groups


def test_chains_share_what_their_seed_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """Contexts of 50 arms are there once per seed, so that many settings fit where few did."""
    agent, spec = AGENTS["fglmcts"].build(), TESTBEDS["logistic-20"].build().spec
    monkeypatch.setattr(device, "on_accelerator", lambda: True)
    together = chain_bytes(agent, laid_out(spec, layout_of(120, 12)), 3000)
    monkeypatch.setattr(device, "has_programs", lambda: True)
    programs = chain_bytes(agent, laid_out(spec, layout_of(120, 12)), 3000)
    shown = 3 * 4 * 3000 * 50 * 20
    assert together > shown > 8 * programs > 8 * shown / 12


def test_where_chains_have_programs_stores_need_not_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "on_accelerator", lambda: True)
    monkeypatch.setattr(device, "has_programs", lambda: True)
    monkeypatch.setattr(device, "memory_limit", lambda: None)
    plan = plan_of(AGENTS["fglmcts"].build(), settings=2, seeds=4)
    assert plan.spec.layout.steps == "apart" and plan.room_at_once
    assert plan.repeats_draws and not plan.one_program
    monkeypatch.undo()
    assert plan_of(AGENTS["fglmcts"].build()).one_program and not device.has_programs()


@pytest.mark.parametrize(("name", "told"), [("fglmcts", True), ("jfgmalats", False)])
def test_a_version_of_jax_without_programs_is_told(
    name: str, told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device, "on_accelerator", lambda: True)
    monkeypatch.setattr(device, "on_nvidia", lambda: True)
    monkeypatch.setattr(device, "memory_limit", lambda: None)
    monkeypatch.setattr(device, "has_programs", lambda: False)
    sentences: list[str] = []
    plan = plan_of(AGENTS[name].build(), settings=2, seeds=4, notify=sentences.append)
    assert plan.spec.layout.steps == "together"
    assert ["no Triton in Pallas" in sentence for sentence in sentences] == [True] * told


@pytest.mark.parametrize(
    ("name", "needs", "repeats"),
    [
        ("lints", Needs(draw=6 + NORMALS, choose=0), False),
        ("linucb", Needs(draw=0, choose=0), False),
        ("lmcts", Needs(draw="key", choose=0), True),
        ("epsgreedy", Needs(draw=0, choose="key"), False),
        ("neural-ts", Needs(draw="key", choose="key"), False),
    ],
)
def test_only_chains_of_parameters_are_drawn_again_at_the_end(
    name: str, needs: Needs, repeats: bool
) -> None:
    plan = plan_of(AGENTS[name].build())
    assert plan.needs == needs and plan.repeats_draws is repeats


def test_a_plug_in_without_hints_gets_a_key_and_is_lifted() -> None:
    plan = make_plan(
        Biased(weights=jnp.zeros(3)),
        Coins(),
        settings=1,
        seeds=4,
        rounds=10,
        workers=1,
        notify=lambda sentence: None,
    )
    assert plan.needs == Needs(draw=0, choose="key") and plan.layout_hint == "one"
