"""Draws of an agent with given data: logged runs, and parallel chains that have seen them.

Both are played by the engine's own loop.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from feelgood.core.errors import FeelgoodError
from feelgood.core.policy import Needs, Policy, Report
from feelgood.core.spec import Spec
from feelgood.core.testbed import Testbed
from feelgood.engine.compiling import compiled, in_own_precision
from feelgood.engine.device import usable_cores
from feelgood.engine.environment import Block, environment
from feelgood.engine.lifting import for_lanes
from feelgood.engine.loop import Player, Playing, Window, repeated_draws
from feelgood.engine.plan import cut_evenly, laid_out, layout_of
from feelgood.engine.threads import in_threads
from feelgood.numerics import generator
from feelgood.numerics.keys import (
    AGENT,
    CHAINS,
    AnyKey,
    LaneKeys,
    seed_array,
    seed_keys,
    start_key,
)
from feelgood.numerics.noise import noise_ahead
from feelgood.posterior.laws import Observed


def lane_keys(keys: Key[Array, "..."]) -> AnyKey:
    """Keys as policies take them."""
    return LaneKeys(keys=keys, settings=1) if keys.ndim else keys


class _WholeRun(eqx.Module):
    """Plays all rounds of a block; a module, so that equal ones share their program."""

    spec: Spec = eqx.field(static=True)

    def __call__(
        self, policy: Policy, keys: Key[Array, "*lanes"], block: Block
    ) -> tuple[Int[Array, "rounds *lanes"], Playing]:
        used, rounds = lane_keys(keys), len(block.rewards)
        needs = policy.needs(self.spec)
        ahead = noise_ahead(keys.reshape(-1), needs, jnp.int32(0), rounds)
        if not keys.ndim:
            ahead = jax.tree.map(lambda x: x[..., 0], ahead)
        state = policy.reserve(policy.init(start_key(used), self.spec), rounds)
        playing = Playing(state=state, diverged_at=jnp.full(self.spec.lanes, -1, jnp.int32))
        play = Player(self.spec, needs, repeats_draws=False)
        window = Window.of(0, 0, rounds)
        playing, record = play(playing, policy, used, block, ahead, window)
        return record.arms, playing


class _Follower(Policy):
    """Plays the arms of a logged run, whatever it would choose, and learns from them.

    With `live` it makes its draws in every round of the run, as an agent that plays does.
    """

    one: Policy
    arms: Int[Array, " rounds"]
    live: bool = eqx.field(static=True)

    def init(self, key: AnyKey, spec: Spec) -> tuple[Any, Int[Array, ""]]:
        return self.one.init(key, spec), jnp.zeros((), jnp.int32)

    def needs(self, spec: Spec) -> Needs:
        return self.one.needs(spec)._replace(choose=0) if self.live else Needs(choose=0)

    def draw(self, noise: Any, state: tuple[Any, Int[Array, ""]]) -> tuple[Any, Int[Array, ""]]:
        return (self.one.draw(noise, state[0]), state[1]) if self.live else state

    def choose(
        self, noise: None, state: tuple[Any, Int[Array, ""]], context: Float[Array, "..."]
    ) -> Int[Array, "*lanes"]:
        del noise
        lanes = self.one.report(state[0]).finite.shape
        return jnp.broadcast_to(self.arms[state[1]], lanes)

    def update(
        self,
        state: tuple[Any, Int[Array, ""]],
        context: Float[Array, "..."],
        arm: Int[Array, "*lanes"],
        reward: Float[Array, "*lanes"],
    ) -> tuple[Any, Int[Array, ""]]:
        return self.one.update(state[0], context, arm, reward), state[1] + 1

    def report(self, state: tuple[Any, Int[Array, ""]]) -> Report:
        return self.one.report(state[0])

    def reserve(self, state: tuple[Any, Int[Array, ""]], rounds: int) -> Any:
        return self.one.reserve(state[0], rounds), state[1]


class _Learner(eqx.Module):
    """Chains that take in a logged run, forget where they began, and draw."""

    spec: Spec = eqx.field(static=True)
    burn: int = eqx.field(static=True)
    draws: int = eqx.field(static=True)
    live: bool = eqx.field(static=True)

    def __call__(
        self, policy: Policy, keys: Key[Array, "*lanes"], log: Block, arms: Int[Array, " rounds"]
    ) -> Float[Array, "draws parameters *lanes"]:
        follower = _Follower(policy, arms, self.live)
        _, playing = _WholeRun(self.spec)(follower, keys, log)
        state, _ = playing.state
        needs, used = policy.needs(self.spec), lane_keys(keys)
        # The rounds of a live run have the folds from 1 on.
        first = 1 + (len(arms) if self.live else 0)
        state = repeated_draws(policy, needs, used, state, self.burn, first)[1]
        return repeated_draws(policy, needs, used, state, self.draws, first + self.burn)[0]


def require_draws(agent: str, policy: Policy, spec: Spec) -> None:
    """Refuse an agent that draws no parameters of a linear model."""
    if not draws_linear_parameters(policy, spec):
        raise FeelgoodError(
            f"'{agent}' draws no parameters of a linear model, so it has no posterior: "
            "name a Thompson agent such as lints or lmcts."
        )


@in_own_precision
def draws_linear_parameters(policy: Policy, spec: Spec) -> bool:
    """Whether an agent draws the parameters of a linear model for this problem."""
    report = jax.eval_shape(lambda key: policy.report(policy.init(key, spec)), generator.key(0))
    drawn = report.parameters
    return policy.needs(spec).draw != 0 and drawn is not None and drawn.shape == (spec.parameters,)


@in_own_precision
def gather(testbed: Testbed, policy: Policy, rounds: int, seed: int) -> Observed:
    """What one agent sees in a run of one seed, the same as in `feelgood run`."""
    block = jax.tree.map(lambda x: x[..., 0], environment(testbed, [seed], rounds))
    key = seed_keys(seed_array([seed]), AGENT)[0]
    spec = laid_out(testbed.spec, layout_of(1, 1))
    args = (policy, key, block)
    played, playing = compiled(_WholeRun(spec), *args)[0](*args)
    if playing.diverged_at >= 0:
        raise FeelgoodError(
            f"the agent that plays the run of seed {seed} diverged in round "
            f"{playing.diverged_at}: use other settings for it."
        )
    arms = np.asarray(played)
    got = np.asarray(block.rewards)[np.arange(rounds), arms]
    return Observed(contexts=np.asarray(block.contexts), arms=arms, rewards=got)


@in_own_precision
def play_many(
    testbed: Testbed, policy: Policy, rounds: int, seeds: list[int]
) -> tuple[Any, AnyKey, Policy]:
    """The states of one run per seed, with the keys and the policy to go on with."""
    block = environment(testbed, seeds, rounds)
    keys = seed_keys(seed_array(seeds), AGENT)
    spec = laid_out(testbed.spec, layout_of(len(seeds), 1))
    many = for_lanes(policy, spec, policy.hints(testbed.spec).layout)
    args = (many, keys, block)
    _, playing = compiled(_WholeRun(spec), *args)[0](*args)
    return playing.state, lane_keys(keys), many


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
    hints = policy.hints(spec)
    groups = cut_evenly(chains, 1 if hints.company == "none" else -(-chains // workers))
    size = len(groups[0])
    # All chains of a program share one log, as settings of a sweep share one seed's contexts.
    own = laid_out(spec, layout_of(size, size))
    used = for_lanes(policy, own, hints.layout)
    learner = _Learner(spec=own, burn=burn, draws=draws, live=live)
    arms = jnp.asarray(log.arms)
    contexts, got = jnp.asarray(log.contexts), jnp.asarray(log.rewards)
    rewards = jnp.broadcast_to(got[:, None], (len(arms), spec.arms))
    block = Block(contexts=contexts, rewards=rewards, means=rewards)
    if own.lanes:
        block = jax.tree.map(lambda x: x[..., None], block)

    def run(index: int, advance: Any) -> np.ndarray:
        del advance
        group = np.asarray(groups[index])
        args = (used, keys[group] if own.lanes else keys[group[0]], block, arms)
        out = np.asarray(compiled(learner, *args)[0](*args), np.float64)
        return out.reshape(draws, spec.dim, spec.blocks, len(group))

    parts = in_threads(run, len(groups), max(1, workers))
    together = np.concatenate(parts, axis=-1)[..., :chains]
    return np.moveaxis(together, (3, 0, 2, 1), (0, 1, 2, 3))
