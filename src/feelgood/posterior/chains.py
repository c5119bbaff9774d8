"""Draws of an agent with given data: logged runs, and parallel chains that have seen them."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int, Key

from feelgood.core.errors import FeelgoodError
from feelgood.core.protocols import Policy, Testbed
from feelgood.core.spec import Spec
from feelgood.engine.compiling import compiled, in_own_precision
from feelgood.engine.environment import AGENT, environment, seed_array, seed_keys
from feelgood.engine.grouping import usable_cores
from feelgood.engine.lifting import Lifted
from feelgood.numerics import generator, lanes
from feelgood.numerics.lanes import AnyKey, LaneKeys
from feelgood.posterior.laws import Observed

#: The stream of random numbers of the parallel chains, beside the engine's two.
CHAINS = 2


def lifted(policy: Policy, count: int) -> Policy:
    """The policy for `count` chains at once."""
    if policy.laned or count == 0:
        return policy
    return Lifted(one=policy, swept=(False,) * len(jax.tree.leaves(policy)))


def lane_keys(keys: Key[Array, "..."]) -> AnyKey:
    """Keys as policies take them."""
    return LaneKeys(keys=keys, settings=1) if keys.ndim else keys


class _Player(eqx.Module):
    """Plays all rounds of an environment; a module, so that equal ones share their program."""

    spec: Spec = eqx.field(static=True)

    def __call__(
        self,
        policy: Policy,
        keys: Key[Array, "*lanes"],
        contexts: Float[Array, "rounds ..."],
        rewards: Float[Array, "rounds arms *lanes"],
    ) -> tuple[Int[Array, "rounds *lanes"], Any]:
        used = lane_keys(keys)

        def one(state: Any, seen: tuple[Array, Array, Array]) -> tuple[Any, Array]:
            t, context, reward = seen
            arm, state = policy.act(lanes.fold_in(used, t + 1), state, context)
            got = lanes.pick(reward, lanes.one_hot(arm, self.spec.arms))
            return policy.update(state, context, arm, got), arm

        state = policy.init(lanes.fold_in(used, 0), self.spec, keys.shape)
        state = policy.reserve(state, len(contexts))
        state, arms = lax.scan(one, state, (jnp.arange(len(contexts)), contexts, rewards))
        return arms, state


class _Learner(eqx.Module):
    """Chains that take in a logged run, forget where they began, and draw."""

    spec: Spec = eqx.field(static=True)
    burn: int = eqx.field(static=True)
    draws: int = eqx.field(static=True)
    #: Whether chains make their inner steps in every round of the run, as in a live one.
    live: bool = eqx.field(static=True)

    def __call__(
        self,
        policy: Policy,
        keys: Key[Array, "*lanes"],
        contexts: Float[Array, "rounds ..."],
        arms: Int[Array, " rounds"],
        rewards: Float[Array, " rounds"],
    ) -> Float[Array, "draws parameters *lanes"]:
        used, shape = lane_keys(keys), keys.shape

        def learn(state: Any, seen: tuple[Array, tuple[Array, ...]]) -> tuple[Any, None]:
            t, row = seen
            context, arm, reward = (
                jnp.broadcast_to(x.reshape(*x.shape, *[1] * len(shape)), (*x.shape, *shape))
                for x in row
            )
            if self.live:
                # The arm that it would choose is not played: the data are those of the log.
                _, state = policy.act(lanes.fold_in(rounds_keys, t), state, context)
            return policy.update(state, context, arm, reward), None

        rounds_keys = lanes.fold_in(used, 2**30)

        state = policy.init(lanes.fold_in(used, 0), self.spec, shape)
        state = policy.reserve(state, len(contexts))
        rounds = jnp.arange(len(contexts))
        state, _ = lax.scan(learn, state, (rounds, (contexts, arms, rewards)))
        state = redraw(policy, used, state, self.burn, 1)[1]
        return redraw(policy, used, state, self.draws, 1 + self.burn)[0]


def redraw(
    policy: Policy, keys: AnyKey, state: Any, draws: int, first: Int[Array, ""] | int
) -> tuple[Float[Array, "draws parameters *lanes"], Any]:
    """Repeated draws with the data of `state`, and the state after them."""

    def one(state: Any, i: Int[Array, ""]) -> tuple[Any, Array]:
        drawn = policy.redraw(lanes.fold_in(keys, first + i), state)
        assert drawn is not None
        return drawn[1], drawn[0]

    state, out = lax.scan(one, state, jnp.arange(draws))
    return out, state


def require_draws(agent: str, policy: Policy, spec: Spec) -> None:
    """Refuse an agent that draws no parameters of a linear model."""
    if not draws_parameters(policy, spec):
        raise FeelgoodError(
            f"'{agent}' draws no parameters of a linear model, so it has no posterior: "
            "name a Thompson agent such as lints or lmcts."
        )


@in_own_precision
def draws_parameters(policy: Policy, spec: Spec) -> bool:
    """Whether an agent draws the parameters of a linear model for this problem."""
    key = generator.key(0)
    drawn = jax.eval_shape(lambda p: p.redraw(key, p.init(key, spec)), policy)
    return drawn is not None and drawn[0].shape == (spec.parameters,)


@in_own_precision
def gather(testbed: Testbed, policy: Policy, rounds: int, seed: int) -> Observed:
    """What one agent sees in a run of one seed, the same as in `feelgood run`."""
    block = environment(testbed, [seed], rounds)
    contexts, rewards = block.contexts[..., 0], block.rewards[..., 0]
    key = seed_keys(seed_array([seed]), AGENT)[0]
    args = (policy, key, contexts, rewards)
    arms = np.asarray(compiled(_Player(spec=testbed.spec), *args)[0](*args)[0])
    lost = np.flatnonzero((arms < 0) | (arms >= testbed.spec.arms))
    if len(lost):
        raise FeelgoodError(
            f"the agent that plays the run of seed {seed} diverged in round {lost[0] + 1}: "
            "use other settings for it."
        )
    got = np.asarray(rewards)[np.arange(rounds), arms]
    return Observed(contexts=np.asarray(contexts), arms=arms, rewards=got)


@in_own_precision
def play_many(
    testbed: Testbed, policy: Policy, rounds: int, seeds: list[int]
) -> tuple[Any, AnyKey, Policy]:
    """The states of one run a seed, with the keys and the policy to go on with."""
    block = environment(testbed, seeds, rounds)
    keys = seed_keys(seed_array(seeds), AGENT)
    many = lifted(policy, len(seeds))
    args = (many, keys, block.contexts, block.rewards)
    _, state = compiled(_Player(spec=testbed.spec), *args)[0](*args)
    return state, lane_keys(keys), many


@in_own_precision
def parallel_draws(
    policy: Policy,
    spec: Spec,
    log: Observed,
    *,
    chains: int,
    draws: int,
    burn: int,
    seed: int,
    live: bool = False,
    workers: int | None = None,
) -> Float[np.ndarray, "chains draws blocks dim"]:
    """`draws` draws of each of `chains` independent chains that have seen the same run.

    Every chain starts where the agent starts, takes in the whole run, makes `burn` draws that are
    thrown away, and then those that are kept. With `live` it makes its inner steps in every round
    of the run too, as an agent that plays does; that takes much longer. Chain c has its own random
    numbers whatever the others do. Threads share the chains; a program holds no more of them than
    the agent wants.
    """
    workers = usable_cores() if workers is None else workers
    base = jax.random.fold_in(generator.key(seed), CHAINS)
    keys = jax.vmap(lambda c: jax.random.fold_in(base, c))(jnp.arange(chains))
    most = policy.chains_per_program(spec)
    size = min(-(-chains // workers), most or chains)
    alone = most == 1
    # The last group repeats its last chain, so that all have one shape.
    groups = [
        np.minimum(np.arange(start, start + size), chains - 1) for start in range(0, chains, size)
    ]
    used = policy if alone else lifted(policy, size)
    learner = _Learner(spec=spec, burn=burn, draws=draws, live=live)
    data = (jnp.asarray(log.contexts), jnp.asarray(log.arms), jnp.asarray(log.rewards))

    @in_own_precision
    def run(group: np.ndarray) -> np.ndarray:
        args = (used, keys[group[0]] if alone else keys[group], *data)
        out = np.asarray(compiled(learner, *args)[0](*args), np.float64)
        return out.reshape(draws, spec.dim, spec.blocks, len(group))

    return _in_order(run, groups, workers, chains)


def _in_order(
    run: Callable[[np.ndarray], np.ndarray], groups: list[np.ndarray], workers: int, chains: int
) -> Float[np.ndarray, "chains draws blocks dim"]:
    with ThreadPoolExecutor(max_workers=max(1, workers)) as pool:
        parts = list(pool.map(run, groups))
    together = np.concatenate(parts, axis=-1)[..., :chains]
    return np.moveaxis(together, (3, 0, 2, 1), (0, 1, 2, 3))
