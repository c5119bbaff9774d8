"""Checks of an agent: it plays arms that there are, alone and among others, and is pure."""

import functools
import math
from typing import Any

import jax
import numpy as np

from feelgood.api.agent_case import (
    CHECKED_ROUNDS,
    CHECKED_SEEDS,
    AgentCase,
    play_rounds,
)
from feelgood.api.findings import Findings, same_program, structure_change
from feelgood.core.policy import Report
from feelgood.core.registry import Entry
from feelgood.core.settings import Setting
from feelgood.engine import compiling
from feelgood.engine.loop import Player
from feelgood.engine.simulation import simulate


def check_play(case: AgentCase, problem: str) -> Findings:
    """Arms that there are, sound chains, and the shapes of everything that comes out."""
    spec = case.problems[problem].spec
    for live, shape in ((True, ()), (False, (3,))):
        out = case.played(problem, CHECKED_SEEDS[:1] if live else CHECKED_SEEDS, live)
        outside = out.arms[(out.arms < 0) | (out.arms >= spec.arms)]
        if outside.size:
            yield f"choose plays arm {outside[0]} of {spec.arms}: arms are 0 to {spec.arms - 1}."
            return
        finite = out.report.finite
        if out.arms.shape != (CHECKED_ROUNDS, *shape) or finite.shape != shape:
            yield f"arms and finite have shapes {out.arms.shape[1:]} and {finite.shape}."
            return
        if not np.all(finite):
            yield f"report says after {CHECKED_ROUNDS} healthy rounds that the chain is not finite."
            return
        if not all(value.shape == shape for value in out.report.health.values()):
            yield "health has other shapes than one number per chain."
        if not all(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(out.state)):
            yield "the state holds something that is no array."


def check_live(case: AgentCase, problem: str) -> Findings:
    """A live decision is that of the same chain among lanes."""
    among = case.played(problem, CHECKED_SEEDS)
    alone = case.played(problem, CHECKED_SEEDS[:1], live=True)
    same = np.array_equal(alone.arms, among.arms[:, 0])
    if not same or not _close(alone.report, among.report):
        yield "a live decision differs from that of the same chain among others."


def _close(alone: Report, among: Report) -> bool:
    """Whether the report of a live agent is that of the first chain, but for rounding."""
    pairs = zip(jax.tree.leaves(alone), jax.tree.leaves(among), strict=True)
    return all(np.allclose(one, many[..., 0], rtol=1e-4, atol=1e-5) for one, many in pairs)


def _first_chains_equal(one: Report, other: Report) -> bool:
    pairs = zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    return all(np.array_equal(a[..., 0], b[..., 0]) for a, b in pairs)


def check_apart(case: AgentCase, problem: str) -> Findings:
    """The same program with other neighbours: bit for bit the same chain."""
    a, b = case.played(problem, CHECKED_SEEDS), case.played(problem, (0, 8, 9))
    same = np.array_equal(a.arms[:, 0], b.arms[:, 0]) and _first_chains_equal(a.report, b.report)
    for left, right in zip(jax.tree.leaves(a.state), jax.tree.leaves(b.state), strict=True):
        if (
            left.shape[-1:] == (3,)
            and left.ndim
            and not np.array_equal(left[..., 0], right[..., 0])
        ):
            same = False
    if not same:
        yield "a chain depends on its neighbours: keep the lanes apart."
    if _uses_numbers(case, problem) and np.array_equal(a.arms[:, 1:], b.arms[:, 1:]):
        yield "other seeds play the same arms: use the noise of choose and the rewards of update."


def _uses_numbers(case: AgentCase, problem: str) -> bool:
    """Whether more than one arm is ever played: else seeds cannot differ."""
    return len(np.unique(case.played(problem, CHECKED_SEEDS).arms)) > 1


def check_pure(case: AgentCase, problem: str) -> Findings:
    """The same input gives the same output, and tracing twice gives the same program."""
    first = case.played(problem, CHECKED_SEEDS)
    kept = jax.tree.map(np.array, first.state)
    again = case.played(problem, CHECKED_SEEDS)
    leaves = (jax.tree.leaves(x) for x in (kept, first.state, again.state))
    same = all(
        np.array_equal(before, after, equal_nan=True)
        and np.array_equal(before, now, equal_nan=True)
        for before, after, now in zip(*leaves, strict=True)
    )
    inputs = case.inputs(problem, CHECKED_SEEDS, live=False)
    anew = jax.jit(functools.partial(play_rounds, case.problems[problem].spec, len(CHECKED_SEEDS)))
    traces = (
        program.trace(*inputs) for program in (case.player(problem, len(CHECKED_SEEDS)), anew)
    )
    if not same or not same_program(*traces):
        yield (
            "its functions are not pure: with the same input they do not do the same, so take "
            "random numbers from the key and keep everything in the state."
        )


def other_values(rule: Setting) -> list[float]:
    """Two allowed values that are not the default, which may be a special case (λ = 0)."""
    start = rule.default
    low = -math.inf if rule.low is None else rule.low
    if rule.above is not None:
        low = math.nextafter(rule.above, math.inf)
    high = math.inf if rule.high is None else rule.high
    candidates = (2 * start + 0.25, 1.5 * start + 0.125, 0.75 * start, 0.5 * start)
    return [value for value in candidates if low <= value <= high and value != start][:2]


def two_variants(entry: Entry[Any]) -> list[dict[str, Any]]:
    """Two sets of settings that differ in every number, but for those that are left open."""
    numbers = {n: rule for n, rule in entry.settings.items() if isinstance(rule.default, float)}
    pairs = {n: other_values(rule) for n, rule in numbers.items() if not rule.static}
    return [{n: values[i] for n, values in pairs.items() if len(values) > i} for i in range(2)]


def check_leaves(case: AgentCase) -> Findings:
    """Another value of a number is another leaf of the same program."""
    entry = case.entry
    first, second = two_variants(entry)
    for key, rule in entry.settings.items():
        if not isinstance(rule.default, float):
            continue
        alike = rule.static
        if key in second:
            one, two = (entry.build({**first, key: values[key]}) for values in (first, second))
            pairs = zip(jax.tree.leaves(one), jax.tree.leaves(two), strict=False)
            same_shape = structure_change(one, two) is None
            alike = alike or not same_shape or all(np.array_equal(a, b) for a, b in pairs)
        if alike:
            yield f"the number '{key}' is not an array leaf: each value in a sweep needs a program."


def check_sweep(case: AgentCase, problem: str) -> Findings:
    """A sweep over all numbers is one program and equals the runs one by one."""
    variants = [case.entry.build(values) for values in two_variants(case.entry)]
    if not jax.tree.leaves(variants):
        return
    testbed = case.problems[problem]
    before = set(compiling._programs)
    swept = simulate(testbed, variants, rounds=CHECKED_ROUNDS, seeds=CHECKED_SEEDS, workers=1)
    if sum(isinstance(key[0], Player) for key in set(compiling._programs) - before) > 1:
        yield "a sweep over its numbers is more than one program: let none of them shape it."
    for g, variant in enumerate(variants):
        alone = simulate(testbed, variant, rounds=CHECKED_ROUNDS, seeds=CHECKED_SEEDS, workers=1)
        if not np.array_equal(swept.arm_counts[g], alone.arm_counts[0]) or not np.allclose(
            swept.curve[g], alone.curve[0], rtol=1e-6, atol=0.0, equal_nan=True
        ):
            yield "a setting gives other results in a sweep than alone."
            return
