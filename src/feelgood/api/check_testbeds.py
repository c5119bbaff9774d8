"""Checks of a testbed: what its functions return, and that they are pure."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from feelgood.api.findings import Findings, kind_of, said, same_program
from feelgood.core.errors import shown
from feelgood.core.spec import Spec
from feelgood.core.testbed import Testbed
from feelgood.engine.environment import environment
from feelgood.numerics import generator


def check_testbed_kinds(testbed: Testbed) -> Findings:
    """What every function of a testbed returns, found without running it."""
    spec: Any
    rounds: Any
    try:
        spec, rounds = testbed.spec, testbed.rounds
    except Exception as error:
        yield f"spec or rounds {said(error)}"
        return
    if not isinstance(spec, Spec):
        yield f"spec is {kind_of(spec)}: return a feelgood.Spec."
        return
    if not isinstance(rounds, int) or isinstance(rounds, bool) or rounds < 1:
        yield f"rounds is {shown(rounds)}: return a whole number above 0."
    key, t = generator.key(0), jax.ShapeDtypeStruct((), jnp.int32)

    def look(t: Any) -> Any:
        state = testbed.init(key)
        context = testbed.context(key, state, t)
        means = testbed.mean_rewards(state, context, t)
        return state, context, means, testbed.rewards(key, state, means)

    try:
        _, *seen = jax.eval_shape(look, t)
    except Exception as error:
        yield f"a round {said(error)}"
        return
    names = ("context", "mean_rewards", "rewards")
    shapes = (spec.context_shape, (spec.arms,), (spec.arms,))
    for name, value, shape in zip(names, seen, shapes, strict=True):
        if getattr(value, "shape", None) != shape or value.dtype != jnp.float32:
            expected = f"float32{list(shape)}"
            yield f"{name} returns {kind_of(value)}: with its spec it must be {expected}."


def check_testbed_pure(testbed: Testbed) -> Findings:
    """The same key gives the same round, however often it is asked."""
    key = generator.key(1)

    def look(testbed: Testbed, key: jax.Array) -> Any:
        state = testbed.init(key)
        context = testbed.context(key, state, jnp.asarray(3))
        means = testbed.mean_rewards(state, context, jnp.asarray(3))
        return state, context, testbed.rewards(key, state, means)

    programs = [jax.jit(functools.partial(look)) for _ in range(2)]
    first, again = (jax.tree.leaves(programs[0](testbed, key)) for _ in range(2))
    same = all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    if not same or not same_program(*(program.trace(testbed, key) for program in programs)):
        yield "its functions are not pure: take all random numbers from the key."


def check_testbed_rounds(testbed: Testbed) -> Findings:
    """The rounds themselves: finite, not all alike, rewards as the spec says."""
    block = environment(testbed, [0, 1], 4)
    for name, values in zip(("contexts", "rewards", "mean rewards"), block, strict=True):
        if not np.all(np.isfinite(values)):
            yield f"{name} are not all finite."
    if testbed.spec.rewards == "bernoulli" and not set(np.unique(block.rewards)) <= {0.0, 1.0}:
        wrong = next(v for v in np.unique(block.rewards) if v not in (0.0, 1.0))
        yield f"a reward is {wrong:g}: a spec with Bernoulli rewards allows 0 and 1 only."
    moving = (block.contexts, block.rewards)
    if all(np.all(np.asarray(x) == np.asarray(x)[:1, ..., :1]) for x in moving):
        yield "all rounds of all seeds are the same: draw contexts or rewards from the key."
