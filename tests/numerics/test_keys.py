"""The key contract: agents are compared on the same numbers, and none changes another's."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from grids import slow_but
from registered import built
from toys import Witness

import feelgood
from feelgood import TESTBEDS
from feelgood.engine.compiling import BRIEFLY, ONCE, compiled
from feelgood.engine.environment import Block, BlockMaker, environment, settle
from feelgood.engine.simulation import simulate
from feelgood.numerics.keys import AGENT, ENVIRONMENT, seed_array, seed_keys
from feelgood.testbeds import Linear, Logistic

TINY = Linear(parameters=6, arms=3)
TINY_SHARED = Logistic(dim=3, arms=4)
ROUNDS = 60  # at most 100, so that curves and health show every round


#: The data set that needs no file comes first, and so is the quick one.
FAMILIES = sorted(
    ((f.names + f.more_names)[0] for f in TESTBEDS.families()), key=lambda name: name != "digits"
)


def equal(a: Block, b: Block) -> None:
    for name in Block._fields:
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)


@pytest.mark.parametrize("name", slow_but(("digits", "linear-20"), FAMILIES))
def test_seed_7_alone_meets_what_seed_7_meets_among_many(name: str) -> None:
    testbed = built(TESTBEDS[name])
    alone, many = environment(testbed, [7], 20), environment(testbed, [3, 7, 1, 4], 20)
    equal(alone, jax.tree.map(lambda x: x[..., 1:2], many))
    # Arms that never change show the same to all seeds; their rewards differ.
    assert not np.array_equal(many.rewards[..., 0], many.rewards[..., 1]), "seeds must differ"


# Quick: one of data, and one of each kind of context.
@pytest.mark.parametrize("name", slow_but(("digits", "logistic-20"), FAMILIES))
def test_rounds_do_not_depend_on_the_block_they_are_made_in(name: str) -> None:
    testbed, seeds = built(TESTBEDS[name]), seed_array([7, 8])
    whole = environment(testbed, [7, 8], 20)
    settled = compiled(settle, testbed, seeds, effort=ONCE)[0](testbed, seeds)
    args = (testbed, *settled, jnp.asarray(9))
    part = compiled(BlockMaker(length=6), *args, effort=BRIEFLY)[0](*args)
    equal(part, jax.tree.map(lambda x: x[9:15], whole))
    assert not np.array_equal(whole.rewards[0], whole.rewards[1]), "rounds must differ"


@pytest.mark.parametrize("testbed", [TINY, TINY_SHARED], ids=["disjoint", "shared"])
def test_every_agent_meets_the_same_contexts_and_the_same_luck(testbed: feelgood.Testbed) -> None:
    """Agents that play different arms see the same contexts, and their own arm's reward."""
    seeds = [7, 2, 9]
    block = environment(testbed, seeds, ROUNDS)
    agents = [Witness(arm=float(arm)) for arm in range(3)]
    outcome = simulate(testbed, agents, rounds=ROUNDS, seeds=seeds)
    contexts = np.asarray(block.contexts).reshape(ROUNDS, -1, 3).sum(axis=1)
    for arm in range(3):
        np.testing.assert_allclose(outcome.health["context"][arm], contexts.T, rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(outcome.health["reward"][arm], block.rewards[:, arm].T)


@pytest.mark.parametrize(
    ("contexts", "agent"),
    slow_but(
        [("disjoint", "uniform"), ("shared", "lints")],
        itertools.product(("disjoint", "shared"), ("uniform", "lints", "linucb")),
    ),
)
def test_an_agents_seed_7_alone_is_its_seed_7_among_many(contexts: str, agent: str) -> None:
    """Bit for bit, although the two are different programs (one without lanes, one with)."""
    testbed = {"disjoint": TINY, "shared": TINY_SHARED}[contexts]
    (alone,) = feelgood.run(testbed, [agent], rounds=ROUNDS, seeds=[7])
    (many,) = feelgood.run(testbed, [agent], rounds=ROUNDS, seeds="5:9")
    np.testing.assert_array_equal(alone.curve[0], many.curve[2])
    np.testing.assert_array_equal(alone.arm_counts[0], many.arm_counts[2])


def test_adding_an_agent_changes_nobody_else() -> None:
    (alone,) = feelgood.run(TINY, ["lints"], rounds=ROUNDS, seeds=3)
    company = feelgood.run(TINY, ["uniform", "lints", "epsgreedy"], rounds=ROUNDS, seeds=3)
    np.testing.assert_array_equal(alone.curve, company["lints"].curve)
    np.testing.assert_array_equal(alone.arm_counts, company["lints"].arm_counts)


def test_the_two_streams_of_a_seed_differ() -> None:
    seeds = seed_array([0, 1])
    keys = [jax.random.key_data(seed_keys(seeds, s)) for s in (ENVIRONMENT, AGENT)]
    assert len(np.unique(np.concatenate(keys), axis=0)) == 4


def test_agents_draw_fresh_noise_every_round() -> None:
    """A uniform agent that reused its key would play one arm for ever."""
    outcome = simulate(TINY, feelgood.AGENTS["uniform"].build(), rounds=ROUNDS, seeds=[0])
    assert np.all(outcome.arm_counts[0, 0] > 0)
