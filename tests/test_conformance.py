"""What every registered agent and testbed must do, because it is registered.

A new agent or testbed is checked here without being named anywhere.
"""

import functools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from registered import built

import feelgood  # noqa: F401  (fills the registries)
from feelgood import AGENTS, TESTBEDS, FeelgoodError, Policy, Testbed, compiling, lanes
from feelgood.environment import AGENT, Block, environment, seed_array, seed_keys
from feelgood.lanes import LaneKeys
from feelgood.lifting import Lifted
from feelgood.registry import Entry
from feelgood.settings import Setting
from feelgood.simulate import _play, simulate
from feelgood.testbeds import Linear, Logistic

PROBLEMS: dict[str, Testbed] = {
    "disjoint": Linear(parameters=6, arms=3),
    "shared": Logistic(dim=3, arms=4),
}
ROUNDS, SEEDS = 12, (0, 1, 2)


def agents() -> list[Any]:
    """Every name; of a family with many, all but the plainest are slow tests."""
    out = []
    for family in AGENTS.families():
        names = (*family.names, *family.more_names)
        plainest = min(names, key=len)
        out += [
            pytest.param(name, marks=[] if name == plainest else [pytest.mark.slow])
            for name in names
        ]
    return out


EVERY_AGENT = pytest.mark.parametrize("name", agents())
EVERY_PROBLEM = pytest.mark.parametrize("problem", PROBLEMS)
EVERY_TESTBED = pytest.mark.parametrize("name", TESTBEDS.names())
EVERY_ENTRY = pytest.mark.parametrize(
    "entry",
    [registry[name] for registry in (AGENTS, TESTBEDS) for name in registry.names(more=True)],
    ids=lambda entry: entry.name,
)


# ---- agents ---------------------------------------------------------------------------------


class Played(NamedTuple):
    """Some rounds, played without the engine; lanes are the last axis, or there are none."""

    arms: np.ndarray
    state: Any
    probe: jax.Array
    health: dict[str, jax.Array]
    draw: Any


@functools.cache
def blocks(problem: str, seeds: tuple[int, ...]) -> Block:
    return environment(PROBLEMS[problem], seeds, ROUNDS)


@functools.cache
def player(name: str, problem: str, lane_count: int) -> Any:
    """A compiled function from (seeds, contexts, rewards) to what was played."""
    spec = PROBLEMS[problem].spec
    policy = AGENTS[name].build()
    shape = (lane_count,) if lane_count else ()
    if lane_count and not policy.laned:
        policy = Lifted(one=policy, swept=(False,) * len(jax.tree.leaves(policy)))

    def play(policy: Policy, keys: jax.Array, contexts: jax.Array, rewards: jax.Array) -> Any:
        used = LaneKeys(keys=keys, settings=1) if shape else keys[0]

        def one_round(state: Any, seen: Any) -> Any:
            t, context, reward = seen
            arm, state = policy.act(lanes.fold_in(used, t + 1), state, context)
            got = lanes.pick(reward, lanes.one_hot(arm, spec.arms))
            return policy.update(state, context, arm, got), arm

        state = policy.reserve(policy.init(lanes.fold_in(used, 0), spec, shape), ROUNDS)
        state, arms = jax.lax.scan(one_round, state, (jnp.arange(ROUNDS), contexts, rewards))
        draw = policy.redraw(lanes.fold_in(used, ROUNDS + 1), state)
        return arms, state, policy.probe(state), policy.health(state), draw

    # Less optimisation: these few rounds are compiled for longer than they run.
    quick = {"xla_backend_optimization_level": 1} if jax.default_backend() == "cpu" else None
    return functools.partial(jax.jit(play, compiler_options=quick), policy)


def played(name: str, problem: str, seeds: tuple[int, ...], live: bool = False) -> Played:
    block = blocks(problem, seeds)
    contexts, rewards = block.contexts, block.rewards
    if live:
        (contexts, rewards) = (contexts[..., 0], rewards[..., 0])
    play = player(name, problem, 0 if live else len(seeds))
    arms, *rest = play(seed_keys(seed_array(seeds), AGENT), contexts, rewards)
    return Played(np.asarray(arms), *rest)


@EVERY_PROBLEM
@EVERY_AGENT
def test_shapes_and_kinds(name: str, problem: str) -> None:
    spec = PROBLEMS[problem].spec
    for live, shape in ((True, ()), (False, (3,))):
        out = played(name, problem, SEEDS[:1] if live else SEEDS, live)
        assert out.arms.shape == (ROUNDS, *shape)
        assert np.issubdtype(out.arms.dtype, np.integer)
        assert np.all((out.arms >= 0) & (out.arms < spec.arms))
        assert out.probe.shape == shape
        assert np.all(np.isfinite(out.probe))
        assert all(value.shape == shape for value in out.health.values())
        assert all(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(out.state))
        if out.draw is not None:
            assert out.draw[0].shape == (spec.parameters, *shape)


@EVERY_PROBLEM
@EVERY_AGENT
def test_a_live_decision_is_that_of_the_same_chain_among_lanes(name: str, problem: str) -> None:
    among = played(name, problem, SEEDS)
    alone = played(name, problem, SEEDS[:1], live=True)
    np.testing.assert_array_equal(alone.arms, among.arms[:, 0])
    np.testing.assert_allclose(alone.probe, among.probe[0], rtol=1e-4, atol=1e-5)


@EVERY_PROBLEM
@EVERY_AGENT
def test_chains_do_not_touch_each_other(name: str, problem: str) -> None:
    """The same program with other neighbours: bit for bit the same chain."""
    a, b = played(name, problem, SEEDS), played(name, problem, (0, 8, 9))
    np.testing.assert_array_equal(a.arms[:, 0], b.arms[:, 0])
    np.testing.assert_array_equal(a.probe[0], b.probe[0])
    for left, right in zip(jax.tree.leaves(a.state), jax.tree.leaves(b.state), strict=True):
        if left.shape[-1:] == (3,) and left.ndim:
            np.testing.assert_array_equal(left[..., 0], right[..., 0])
    assert not np.array_equal(a.arms[:, 1:], b.arms[:, 1:])


@EVERY_AGENT
def test_functions_are_pure(name: str) -> None:
    first = played(name, "disjoint", SEEDS)
    kept = jax.tree.map(np.array, first.state)
    again = played(name, "disjoint", SEEDS)
    for before, after, now in zip(
        *(jax.tree.leaves(x) for x in (kept, first.state, again.state)), strict=True
    ):
        np.testing.assert_array_equal(before, after)
        np.testing.assert_array_equal(before, now)


def others(rule: Setting) -> list[float]:
    """Two allowed values that are not the default, which may be a special case (λ = 0)."""
    start = rule.default
    low = -math.inf if rule.low is None else rule.low
    if rule.above is not None:
        low = math.nextafter(rule.above, math.inf)
    high = math.inf if rule.high is None else rule.high
    candidates = (2 * start + 0.25, 1.5 * start + 0.125, 0.75 * start, 0.5 * start)
    return [value for value in candidates if low <= value <= high and value != start][:2]


def two_variants(entry: Entry[Any]) -> list[dict[str, Any]]:
    """Two sets of settings that differ in every number."""
    pairs = {n: others(rule) for n, rule in entry.settings.items() if not rule.static}
    return [{n: values[i] for n, values in pairs.items()} for i in range(2)]


@pytest.mark.parametrize("name", AGENTS.names(more=True))
def test_number_settings_are_array_leaves(name: str) -> None:
    """Another value is another leaf of the same program."""
    entry = AGENTS[name]
    first, second = two_variants(entry)
    for key, rule in entry.settings.items():
        if isinstance(rule.default, float):
            assert not rule.static, key
            one, two = (entry.build({**first, key: values[key]}) for values in (first, second))
            assert jax.tree.structure(one) == jax.tree.structure(two), key
            pairs = zip(jax.tree.leaves(one), jax.tree.leaves(two), strict=True)
            assert any(not np.array_equal(a, b) for a, b in pairs), key


@EVERY_AGENT
def test_a_sweep_is_one_program_and_equals_separate_runs(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = AGENTS[name]
    variants = [entry.build(values) for values in two_variants(entry)]
    if not jax.tree.leaves(variants):
        pytest.skip("has no number settings")
    problem = PROBLEMS["disjoint"]
    monkeypatch.setattr(compiling, "_programs", type(compiling._programs)())
    swept = simulate(problem, variants, rounds=ROUNDS, seeds=SEEDS, workers=1)
    programs = [key for key in compiling._programs if key[0] is _play]
    assert len(programs) == 1
    for g, variant in enumerate(variants):
        alone = simulate(problem, variant, rounds=ROUNDS, seeds=SEEDS, workers=1)
        np.testing.assert_array_equal(swept.arm_counts[g], alone.arm_counts[0])
        np.testing.assert_allclose(swept.curve[g], alone.curve[0], rtol=1e-6)


# ---- testbeds -------------------------------------------------------------------------------


@EVERY_TESTBED
def test_testbed_shapes_and_kinds(name: str) -> None:
    testbed = built(TESTBEDS[name])
    spec = testbed.spec
    assert testbed.rounds >= 1
    contexts, rewards, means = environment(testbed, [0, 1], 4)
    assert contexts.shape == (4, *spec.context_shape, 2)
    assert rewards.shape == means.shape == (4, spec.arms, 2)
    for x in (contexts, rewards, means):
        assert x.dtype == jnp.float32
        assert np.all(np.isfinite(x))
        assert len(np.unique(x, axis=0)) > 1 or name.startswith("wheel"), "rounds must differ"
    if spec.rewards == "bernoulli":
        assert set(np.unique(rewards)) <= {0.0, 1.0}


@EVERY_TESTBED
def test_testbed_functions_are_pure(name: str) -> None:
    testbed = built(TESTBEDS[name])
    key = jax.random.key(1)

    @jax.jit
    def look(testbed: Testbed, key: jax.Array) -> Any:
        state = testbed.init(key)
        context = testbed.context(key, state, jnp.asarray(3))
        means = testbed.mean_rewards(state, context, jnp.asarray(3))
        return state, context, testbed.rewards(key, state, means)

    for a, b in zip(*(jax.tree.leaves(look(testbed, key)) for _ in range(2)), strict=True):
        assert isinstance(a, jax.Array)
        np.testing.assert_array_equal(a, b)


# ---- settings of both -----------------------------------------------------------------------


@EVERY_ENTRY
def test_documented(entry: Entry[Any]) -> None:
    assert len(entry.doc) > 10
    assert entry.doc.endswith(".")
    assert "\n" not in entry.doc
    for key, rule in entry.settings.items():
        assert key.isascii() and key.islower()
        assert len(rule.doc) > 3, key


@EVERY_ENTRY
def test_bounds_are_declared_and_enforced(entry: Entry[Any]) -> None:
    built(entry)
    for key, rule in entry.settings.items():
        assert rule.check(entry.name, key, rule.default) == rule.default
        wrong: list[Any] = ["nonsense"]
        if isinstance(rule.default, int | float) and not isinstance(rule.default, bool):
            assert rule.low is not None or rule.above is not None, f"{key} has no lower bound"
            assert rule.high is not None, f"{key} has no upper bound"
            wrong += [None, math.nan, math.inf, -math.inf, True, rule.high + abs(rule.high) + 1]
            if rule.above is not None:
                wrong.append(rule.above)
            if rule.low is not None:
                wrong.append(rule.low - abs(rule.low) - 1)
                assert rule.check(entry.name, key, rule.low) == rule.low
            assert rule.check(entry.name, key, rule.high) == rule.high
            if isinstance(rule.default, int):
                wrong.append(rule.default + 0.5)
        for value in wrong:
            with pytest.raises(FeelgoodError) as caught:
                entry.build({key: value})
            assert str(caught.value) == (
                f"{entry.name}.{key} = {value!r} is not allowed: use {rule.describe()}."
            )
    with pytest.raises(FeelgoodError, match=f"{entry.name} has no setting 'nonsense'"):
        entry.build({"nonsense": 1})
