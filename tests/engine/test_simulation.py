"""The engine: chains as they should be, however they are grouped, cut and lifted."""

import functools
import threading
import tracemalloc
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from grids import slow_but
from rounds import decide, redraw
from toys import Biased, Coins

import feelgood
from feelgood import AGENTS, FeelgoodError
from feelgood.agents import LinTS, Uniform
from feelgood.agents.thompson import Thompson
from feelgood.core.policy import Hints, Needs
from feelgood.core.testbed import Testbed
from feelgood.engine import compiling, device, group
from feelgood.engine.environment import environment
from feelgood.engine.loop import REPEATED_DRAWS
from feelgood.engine.simulation import Outcome, simulate
from feelgood.numerics.keys import AGENT, LaneKeys, fold_in, seed_array, seed_keys
from feelgood.stats.effective_sample_size import effective_sample_size
from feelgood.testbeds import Linear, Logistic

TINY = Linear(parameters=6, arms=3)


def same(a: Outcome, b: Outcome) -> None:
    """Bit for bit."""
    for name in ("curve", "final_regret", "simple_regret", "best_arm_rate", "arm_counts"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)


def biased(seed: int, weights: list[float], width: float, rounds: int) -> list[int]:
    """What `Biased` plays, one round at a time, straight from the key contract."""
    stream = seed_keys(seed_array([seed]), AGENT)[0]
    start = jax.random.normal(jax.random.fold_in(stream, 0), (3,))
    noise = [jax.random.normal(jax.random.fold_in(stream, t + 1), (3,)) for t in range(rounds)]
    return [int(np.argmax(np.asarray(weights) + start + width * n)) for n in noise]


def test_a_policy_for_one_chain_is_lifted_over_seeds_and_settings() -> None:
    """Number settings and whole arrays may be swept; arrays that are not swept stay themselves."""
    grid = [([0.0, 0.5, 0.0], 1.0), ([0.0, 0.5, 0.0], 0.2), ([0.7, 0.0, 0.1], 1.0)]
    agents = [Biased(weights=jnp.asarray(w), width=s) for w, s in grid]
    for policies in (agents[:2], agents):
        outcome = simulate(Coins(), policies, rounds=12, seeds=[4, 9], workers=1)
        for g, (weights, width) in enumerate(grid[: len(policies)]):
            for n, seed in enumerate((4, 9)):
                counts = np.bincount(biased(seed, weights, width, 12), minlength=3)
                np.testing.assert_array_equal(outcome.arm_counts[g, n], counts)
    alone = simulate(Coins(), agents[1], rounds=12, seeds=[9])
    np.testing.assert_array_equal(alone.arm_counts[0, 0], outcome.arm_counts[1, 1])


class Ahead(Biased):
    """The same agent, whose random numbers are drawn ahead of the rounds."""

    def needs(self, spec: Any) -> Any:
        return Needs(choose=spec.arms)

    def choose(self, noise: Any, state: Any, context: Any) -> Any:
        assert noise.shape == (3,)
        return jnp.argmax(self.weights + state["start"] + self.width * noise)


@pytest.mark.parametrize("seeds", [[4], [4, 9]])
def test_a_policy_for_one_chain_may_draw_its_numbers_ahead(seeds: list[int]) -> None:
    weights = jnp.asarray([0.0, 0.5, 0.0])
    plain, ahead = (
        simulate(
            Coins(), [kind(weights=weights, width=w) for w in (1.0, 0.2)], rounds=12, seeds=seeds
        )
        for kind in (Biased, Ahead)
    )
    same(plain, ahead)


class Alone(Biased):
    """As `Biased`, with one chain in a program."""

    def hints(self, spec: Any) -> Hints:
        return Hints(company="none")


def test_groups_of_any_size_play_the_same() -> None:
    played = [
        simulate(Coins(), kind(weights=jnp.zeros(3)), rounds=6, seeds=range(5))
        for kind in (Biased, Alone)
    ]
    same(*played)


@pytest.mark.slow
@pytest.mark.parametrize("name", slow_but(("lmcts",), ("lmcts", "pfghmcts", "blackjax:barker")))
def test_an_agent_that_draws_acts_as_alone_and_its_draws_are_repeated(name: str) -> None:
    """The engine's draws, one per round and many at the end, against those by hand."""
    policy, seed, rounds = AGENTS[name].build(), 3, 40
    outcome = simulate(TINY, policy, rounds=rounds, seeds=[seed])
    block = environment(TINY, [seed], rounds)
    key = seed_keys(seed_array([seed]), AGENT)[0]
    state = policy.reserve(policy.init(fold_in(key, 0), TINY.spec), rounds)
    act, update, again = map(
        eqx.filter_jit,
        (
            functools.partial(decide, policy, TINY.spec),
            policy.update,
            functools.partial(redraw, policy, TINY.spec),
        ),
    )
    arms = []
    for t in range(rounds):
        context = block.contexts[t, ..., 0]
        arm, state = act(fold_in(key, t + 1), state, context)
        state = update(state, context, arm, block.rewards[t, arm, 0])
        arms.append(int(arm))
    np.testing.assert_array_equal(outcome.arm_counts[0, 0], np.bincount(arms, minlength=3))
    draws = []
    for i in range(REPEATED_DRAWS):
        theta, state = again(fold_in(key, rounds + 1 + i), state)
        draws.append(np.asarray(theta, np.float64))
    np.testing.assert_allclose(
        outcome.ess[0, 0], effective_sample_size(np.stack(draws)).min(), rtol=1e-3
    )


def test_health_of_a_lifted_policy_is_recorded() -> None:
    from toys import Doomed

    for seeds in ([1], [1, 2]):
        outcome = simulate(Coins(), Doomed(), rounds=30, seeds=seeds)
        np.testing.assert_array_equal(outcome.health["count"][0], [outcome.grid] * len(seeds))


def test_regret_counts_the_mean_reward_and_not_the_noise() -> None:
    outcome = simulate(Coins(), Uniform(), rounds=50, seeds=[0, 1])
    counts = outcome.arm_counts
    np.testing.assert_array_equal(counts.sum(-1), 50)
    np.testing.assert_allclose(outcome.final_regret, counts @ [2.0, 1.0, 0.0], rtol=1e-12)
    np.testing.assert_allclose(outcome.best_arm_rate, counts[..., 2] / 50)
    np.testing.assert_array_equal(outcome.simple_regret, outcome.final_regret)
    np.testing.assert_array_equal(outcome.curve[..., -1], outcome.final_regret)


def test_regret_is_that_of_the_environment() -> None:
    """Against the contexts and means that `environment` shows, for an agent that is known."""
    block = environment(TINY, [0, 5], 30)
    agent = Biased(weights=jnp.asarray([0.0, 0.5, 0.0]))
    outcome = simulate(TINY, agent, rounds=30, seeds=[0, 5])
    means = np.asarray(block.means, np.float64)
    for n, seed in enumerate((0, 5)):
        arms = biased(seed, [0.0, 0.5, 0.0], 1.0, 30)
        regret = means[:, :, n].max(1) - means[np.arange(30), arms, n]
        np.testing.assert_allclose(outcome.final_regret[0, n], regret.sum(), rtol=1e-6)


@pytest.mark.slow
def test_results_do_not_depend_on_workers_or_on_how_the_run_is_cut(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Bit for bit, although other numbers of chains and other blocks are other programs."""
    agent = LinTS()
    reference = simulate(TINY, agent, rounds=60, seeds=range(4), workers=1)
    for workers in (2, 4):
        same(reference, simulate(TINY, agent, rounds=60, seeds=range(4), workers=workers))
    monkeypatch.setattr(group, "CALL_SECONDS", 1e-9)  # one round per call from the second call on
    same(reference, simulate(TINY, agent, rounds=60, seeds=range(4), workers=1))
    for block in (25, 7):
        monkeypatch.setattr("feelgood.engine.environment.MAX_BLOCK", block)
        same(reference, simulate(TINY, agent, rounds=60, seeds=range(4), workers=1))


def test_a_longer_run_begins_like_a_shorter_one() -> None:
    short = simulate(TINY, LinTS(), rounds=80, seeds=[0, 1])
    long = simulate(TINY, LinTS(), rounds=100, seeds=[0, 1])
    np.testing.assert_array_equal(short.grid, long.grid[:80])
    np.testing.assert_array_equal(short.curve, long.curve[..., :80])


def test_progress_adds_up_to_all_chain_rounds() -> None:
    seen: list[int] = []
    simulate(
        TINY, [LinTS(eta=1.0), LinTS(eta=2.0)], rounds=70, seeds=range(4), progress=seen.append
    )
    assert sum(seen) == 70 * 4 * 2
    assert all(n > 0 for n in seen)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_raising_progress_stops_all_workers(workers: int) -> None:
    class Enough(Exception):
        pass

    calls: list[int] = []

    def progress(count: int) -> None:
        calls.append(count)
        if len(calls) == 3:
            raise Enough

    with pytest.raises(Enough):
        simulate(TINY, LinTS(), rounds=50_000_000, seeds=[0, 1], progress=progress, workers=workers)
    assert len(calls) < 50
    assert threading.active_count() < 20


NOTHING: list[Callable[[], object]] = [
    lambda: simulate(TINY, LinTS(), rounds=0, seeds=[0]),
    lambda: simulate(TINY, LinTS(), rounds=10, seeds=[]),
    lambda: simulate(TINY, [], rounds=10, seeds=[0]),
]


@pytest.mark.parametrize("call", NOTHING)
def test_a_run_of_nothing_is_refused(call: Callable[[], object]) -> None:
    with pytest.raises(FeelgoodError, match=r"(rounds|seeds) = .* is not allow|give at least one"):
        call()


def test_settings_that_shape_the_program_cannot_share_one() -> None:
    agents = [AGENTS["epsgreedy"].build({"decay": decay}) for decay in ("none", "sqrt")]
    with pytest.raises(FeelgoodError, match="run them apart"):
        simulate(TINY, agents, rounds=10, seeds=[0])
    result = feelgood.run(
        TINY, ["epsgreedy"], rounds=10, seeds=2, settings={"epsgreedy": {"decay": ["none", "sqrt"]}}
    )
    assert [r.settings["decay"] for r in result] == ["none", "sqrt"]


@pytest.mark.slow
def test_host_memory_does_not_grow_with_the_rounds() -> None:
    def peak(rounds: int) -> int:
        tracemalloc.start()
        simulate(TINY, LinTS(), rounds=rounds, seeds=[0, 1], workers=1)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    peak(5_000)  # compiles
    assert peak(100_000) < 2 * peak(10_000)


def test_lane_keys_put_settings_outside_and_seeds_inside() -> None:
    keys = jax.random.split(jax.random.key(0), 2)
    each = LaneKeys(keys=keys, settings=2).each()
    np.testing.assert_array_equal(
        jax.random.key_data(each), jax.random.key_data(keys[jnp.asarray([0, 1, 0, 1])])
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "testbed"),
    [
        ("fgmalats", TINY),
        ("psfghmcts", Logistic(dim=4, arms=20)),
    ],
    ids=["columns", "products"],
)
def test_chains_are_the_same_in_the_layouts_of_an_accelerator(
    name: str, testbed: Testbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Up to rounding, which is too small to change a choice in so few rounds."""
    policies = [AGENTS[name].build({"lam": lam, "b": 0.3}) for lam in (0.1, 0.5)]
    used: list[str] = []
    real = Thompson._evaluator

    def noted(self: Thompson, *args: Any) -> Any:
        evaluator = real(self, *args)
        used.append(type(evaluator).__name__)
        return evaluator

    def play() -> Outcome:
        monkeypatch.setattr(compiling, "_programs", OrderedDict())
        return simulate(testbed, policies, rounds=60, seeds=[3, 4, 5])

    alone = play()
    monkeypatch.setattr(device, "on_accelerator", lambda: True)
    monkeypatch.setattr(Thompson, "_evaluator", noted)
    together = play()
    assert ("Products" if testbed.spec.shared else "Columns") in used
    np.testing.assert_array_equal(together.arm_counts, alone.arm_counts)
    np.testing.assert_allclose(together.final_regret, alone.final_regret, rtol=1e-5)
