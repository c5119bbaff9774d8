"""Does an agent or a testbed keep its promises? The conformance suite as two functions.

`check_agent` and `check_testbed` play a few rounds on small problems and return what is wrong, one
sentence each. Every agent and testbed of the package passes the same checks in the tests.
"""

import dataclasses
import functools
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from feelgood.core.arguments import require_kind
from feelgood.core.errors import FeelgoodError, shown
from feelgood.core.protocols import AGENTS, TESTBEDS, Policy, Testbed
from feelgood.core.registry import Entry, Registry
from feelgood.core.settings import Setting, settings_of
from feelgood.core.spec import Spec
from feelgood.engine import compiling
from feelgood.engine.building import build_testbed
from feelgood.engine.environment import AGENT, Block, environment, seed_array, seed_keys
from feelgood.engine.lifting import Lifted, has_method
from feelgood.engine.simulation import _play, simulate
from feelgood.numerics import generator, lanes
from feelgood.numerics.lanes import LaneKeys
from feelgood.testbeds import Linear, Logistic

#: One context for all arms, and one context per arm: the two kinds that there are.
PROBLEMS: Mapping[str, Testbed] = {
    "disjoint": Linear(parameters=6, arms=3),
    "shared": Logistic(dim=3, arms=4),
}
ROUNDS, SEEDS = 12, (0, 1, 2)
Findings = Iterator[str]


@dataclasses.dataclass(frozen=True, repr=False)
class Report(Sequence[str]):
    """What was found, one sentence each; empty, and false, when all is well."""

    name: str
    findings: tuple[str, ...]
    #: How many checks were made; those that need others to pass are left out.
    checks: int

    def __len__(self) -> int:
        return len(self.findings)

    def __getitem__(self, which: Any) -> Any:
        return self.findings[which]

    def __repr__(self) -> str:
        if not self.findings:
            return f"{self.name}: all {self.checks} checks passed."
        what = "1 finding" if len(self) == 1 else f"{len(self)} findings"
        return "\n".join([f"{self.name}: {what}", *(f"- {finding}" for finding in self.findings)])


def check_agent(agent: Any, *, testbed: Any = None) -> Report:
    """Check an agent: shapes, purity, lanes, sweeps, settings, documentation.

    **Arguments:**

    - `agent`: a registered name, a class or an object of a `feelgood.Policy`.
    - `testbed`: what to play on, a name or a `Testbed`; by default two small problems, one with a
      context for all arms and one with a context per arm.

    **Example:**

    >>> import feelgood
    >>> feelgood.check_agent("uniform")
    uniform: all 15 checks passed.
    """
    case = AgentCase(entry_of(agent, AGENTS, Policy, "agent", "lints"))
    problems = PROBLEMS
    if testbed is not None:
        name, built, _ = build_testbed(testbed)
        problems = {name: built}
    case = dataclasses.replace(case, problems=problems)
    settings = [functools.partial(c, case.entry) for c in (check_documented, check_bounds)]
    stages = [Stage(rest=[*settings, functools.partial(check_leaves, case)])]
    for place, name in enumerate(problems):
        gates = [check_kinds, check_play, *([] if place else [check_pure])]
        rest = [check_live, check_apart, check_twins, *([] if place else [check_sweep])]
        stages.append(
            Stage(
                gates=[functools.partial(check, case, name) for check in gates],
                rest=[functools.partial(check, case, name) for check in rest],
            )
        )
    return _report(case.entry.name, stages)


def check_testbed(testbed: Any) -> Report:
    """Check a testbed: shapes, purity, rewards, settings, documentation.

    **Arguments:**

    - `testbed`: a registered name, a class or an object of a `feelgood.Testbed`.

    **Example:**

    >>> import feelgood
    >>> feelgood.check_testbed("wheel-0.5")
    wheel-0.5: all 5 checks passed.
    """
    entry = entry_of(testbed, TESTBEDS, Testbed, "testbed", "linear-20")
    built = entry.build()
    settings = [functools.partial(c, entry) for c in (check_documented, check_bounds)]
    gates = [functools.partial(c, built) for c in (check_testbed_kinds, check_testbed_pure)]
    rest = [functools.partial(check_testbed_rounds, built)]
    return _report(entry.name, [Stage(rest=settings), Stage(gates=gates, rest=rest)])


class Stage(NamedTuple):
    """Checks that belong together: after a gate that finds something, nothing more is tried."""

    rest: Sequence[Callable[[], Findings]]
    gates: Sequence[Callable[[], Findings]] = ()


def _report(name: str, stages: Iterable[Stage]) -> Report:
    found: dict[str, None] = {}
    made = 0

    def run(check: Callable[[], Findings]) -> bool:
        nonlocal made, found
        made += 1
        try:
            here = list(check())
        except Exception as error:
            here = [f"{_called(check)} {_said(error)}"]
        found |= dict.fromkeys(here)
        return not here

    for stage in stages:
        if all(run(gate) for gate in stage.gates):
            for check in stage.rest:
                run(check)
    return Report(name, tuple(found), made)


def _called(check: Any) -> str:
    return getattr(getattr(check, "func", check), "__name__", "check")


def _said(error: Exception) -> str:
    """An exception as the end of a sentence."""
    text = " ".join(str(error).split()).rstrip(".")
    short = text if len(text) <= 200 else f"{text[:199]}…"
    return f"fails with {type(error).__name__}: {short}."


def entry_of(
    which: Any, registry: Registry[Any], kind: type, what: str, example: str
) -> Entry[Any]:
    """A name, a class or an object as something that can be built with settings."""
    if isinstance(which, str):
        return registry[which]
    if isinstance(which, type) and issubclass(which, kind):
        cls: type = which

        def make(values: Mapping[str, Any]) -> Any:
            try:
                return cls(**values)
            except TypeError as error:
                raise FeelgoodError(
                    f"{cls.__name__} cannot be made of its settings alone ({shown(str(error))})"
                    ": give an object."
                ) from None

        entry: Entry[Any] = Entry(cls.__name__, _doc(cls), settings_of(cls), make)
        entry.build()
        return entry
    require_kind(which, kind, what, f"a name such as '{example}', a class or an object")

    def remake(values: Mapping[str, Any]) -> Any:
        return dataclasses.replace(which, **values)

    own = type(which)
    rules = {
        name: dataclasses.replace(rule, default=_value(which, name, rule))
        for name, rule in settings_of(own).items()
    }
    return Entry(own.__name__, _doc(own), rules, remake)


def _doc(cls: type) -> str:
    """The first line of a class' own documentation."""
    text = (vars(cls).get("__doc__") or "").strip().partition("\n")[0]
    return "" if text.startswith(f"{cls.__name__}(") else text  # a dataclass writes its own


def _value(thing: Any, name: str, rule: Setting) -> Any:
    value = getattr(thing, name)
    return value if rule.static else float(str(np.float32(value)))


# ---- settings of both -----------------------------------------------------------------------


def check_documented(entry: Entry[Any]) -> Findings:
    """A sentence on the whole and a few words on every setting."""
    if len(entry.doc) <= 10 or not entry.doc.endswith(".") or "\n" in entry.doc:
        yield (
            f"the first line of its documentation is {shown(entry.doc)}: write one sentence, with "
            "its full stop, which 'feelgood list' shows."
        )
    for key, rule in entry.settings.items():
        if not (key.isascii() and key.islower()):
            yield f"the setting '{key}' is hard to type: use small letters of the alphabet."
        if len(rule.doc) <= 3:
            yield f"the setting '{key}' is not documented: say in a few words what it is."


def check_bounds(entry: Entry[Any]) -> Findings:
    """Every number has a range that is kept to, and nonsense is refused."""
    for key, rule in entry.settings.items():
        try:
            kept = rule.check(entry.name, key, rule.default) == rule.default
        except FeelgoodError:
            kept = False
        if not kept:
            yield f"the default of '{key}', {shown(rule.default)}, is outside its own range."
        wrong: list[Any] = ["nonsense"]
        if isinstance(rule.default, int | float) and not isinstance(rule.default, bool):
            if rule.low is None and rule.above is None:
                yield f"the setting '{key}' has no lower bound: give low or above."
            if rule.high is None:
                yield f"the setting '{key}' has no upper bound: give high."
            wrong += [None, math.nan, math.inf, -math.inf, True]
            wrong += [] if rule.high is None else [rule.high + abs(rule.high) + 1]
            wrong += [] if rule.above is None else [rule.above]
            wrong += [] if rule.low is None else [rule.low - abs(rule.low) - 1]
            wrong += [rule.default + 0.5] if isinstance(rule.default, int) else []
            for bound in (rule.low, rule.high):
                if bound is not None and rule.check(entry.name, key, bound) != bound:
                    yield f"the setting '{key}' refuses {bound}, its own bound."
        for value in wrong:
            expected = f"{entry.name}.{key} = {shown(value)} is not allowed: use {rule.describe()}."
            if _refusal(entry, {key: value}) != expected:
                yield f"the setting '{key}' does not refuse {shown(value)}."
    if f"{entry.name} has no setting 'nonsense'" not in _refusal(entry, {"nonsense": 1}):
        yield "a setting that does not exist is not refused."


def _refusal(entry: Entry[Any], values: Mapping[str, Any]) -> str:
    try:
        entry.build(values)
    except FeelgoodError as error:
        return str(error)
    return ""


# ---- agents ---------------------------------------------------------------------------------


class Played(NamedTuple):
    """Some rounds, played without the engine; lanes are the last axis, or there are none."""

    arms: np.ndarray
    state: Any
    probe: jax.Array
    health: dict[str, jax.Array]
    draw: Any


@dataclasses.dataclass(frozen=True, eq=False)
class AgentCase:
    """An agent under test: what it has played is kept, so that checks share their programs."""

    entry: Entry[Policy]
    problems: Mapping[str, Testbed] = dataclasses.field(default_factory=lambda: PROBLEMS)

    @functools.cached_property
    def policy(self) -> Policy:
        """The agent at its defaults."""
        return self.entry.build()

    def lifted(self, lane_count: int) -> Policy:
        """The agent for so many lanes, none for one live decision."""
        policy = self.policy
        if lane_count and not policy.laned:
            return Lifted(one=policy, swept=(False,) * len(jax.tree.leaves(policy)))
        return policy

    @functools.cached_property
    def _blocks(self) -> dict[Any, Block]:
        return {}

    @functools.cached_property
    def _players(self) -> dict[Any, Any]:
        return {}

    def block(self, problem: str, seeds: tuple[int, ...]) -> Block:
        """The rounds that are played."""
        if (problem, seeds) not in self._blocks:
            self._blocks[problem, seeds] = _block(self.problems[problem], seeds)
        return self._blocks[problem, seeds]

    def player(self, problem: str, lane_count: int) -> Any:
        """A compiled function from (policy, seeds, contexts, rewards) to what was played."""
        if (problem, lane_count) not in self._players:
            play = functools.partial(_rounds, self.problems[problem].spec, lane_count)
            self._players[problem, lane_count] = jax.jit(play, compiler_options=_quick())
        return self._players[problem, lane_count]

    def inputs(self, problem: str, seeds: tuple[int, ...], live: bool) -> tuple[Any, ...]:
        """What a player takes."""
        block = self.block(problem, seeds)
        contexts, rewards = block.contexts, block.rewards
        if live:
            (contexts, rewards) = (contexts[..., 0], rewards[..., 0])
        policy = self.lifted(0 if live else len(seeds))
        return policy, seed_keys(seed_array(seeds), AGENT), contexts, rewards

    def played(self, problem: str, seeds: tuple[int, ...], live: bool = False) -> Played:
        """Some rounds of these seeds; a `live` agent plays the first of them, without lanes."""
        play = self.player(problem, 0 if live else len(seeds))
        arms, *rest = play(*self.inputs(problem, seeds, live))
        return Played(np.asarray(arms), *rest)


def _quick() -> dict[str, bool | int | str] | None:
    """Less optimisation: these few rounds are compiled for longer than they run."""
    return {"xla_backend_optimization_level": 1} if jax.default_backend() == "cpu" else None


@functools.lru_cache(maxsize=64)
def _kept_block(name: str, seeds: tuple[int, ...]) -> Block:
    return environment(PROBLEMS[name], seeds, ROUNDS)


def _block(testbed: Testbed, seeds: tuple[int, ...]) -> Block:
    """The first rounds of a testbed; those of our own problems are made once."""
    for name, ours in PROBLEMS.items():
        if testbed is ours:
            return _kept_block(name, seeds)
    return environment(testbed, seeds, ROUNDS)


def _rounds(
    spec: Spec, lane_count: int, policy: Policy, keys: Any, contexts: Any, rewards: Any
) -> Any:
    """Play all rounds."""
    shape = (lane_count,) if lane_count else ()
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


def check_kinds(case: AgentCase, problem: str) -> Findings:
    """What every function returns, found without running it."""
    spec = case.problems[problem].spec
    for lane_count in (0, len(SEEDS)):
        policy = case.lifted(lane_count)
        own = case.policy.laned or not lane_count
        place = f"with {lane_count} lanes" if lane_count else "for one chain"
        where = f"on {spec.context_shape} contexts, {place},"
        shape = (lane_count,) if lane_count else ()
        found = list(_kinds(policy, spec, shape, where)) if own else []
        yield from found
        if found:
            return


def _kinds(policy: Policy, spec: Spec, shape: tuple[int, ...], where: str) -> Findings:
    key: Any = generator.key(0)
    if shape:
        key = LaneKeys(keys=seed_keys(seed_array(range(shape[0])), AGENT), settings=1)
    context = jax.ShapeDtypeStruct((*spec.context_shape, *shape), jnp.float32)

    def tried(what: str, function: Callable[..., Any], *args: Any) -> Any:
        try:
            return jax.eval_shape(function, *args), None
        except Exception as error:
            return None, f"{what} {where} {_said(error)}"

    def begin() -> Any:
        return policy.reserve(policy.init(key, spec, shape), ROUNDS)

    state, problem = tried("init", begin)
    if problem:
        yield problem
        return
    loose = [type(leaf).__name__ for leaf in jax.tree.leaves(state) if not hasattr(leaf, "dtype")]
    if loose:
        yield f"init {where} puts a {loose[0]} into the state: use arrays only."
        return
    acted, problem = tried("act", lambda s, c: policy.act(key, s, c), state, context)
    if problem:
        yield problem
        return
    if not isinstance(acted, tuple) or len(acted) != 2:
        yield f"act {where} returns {_kind(acted)}: return the arm and the state."
        return
    arm, after = acted
    if not jnp.issubdtype(getattr(arm, "dtype", float), jnp.integer):
        yield f"act {where} returns an arm of type {_kind(arm)}: use a whole number, of int32."
        return
    if arm.shape != shape:
        yield f"act {where} returns an arm of shape {arm.shape}: it must be {shape}."
        return
    if (change := _changed(state, after)) is not None:
        yield f"act {where} {change}."
        return
    number = jax.ShapeDtypeStruct(shape, jnp.float32)
    whole = jax.ShapeDtypeStruct(shape, arm.dtype)
    learned, problem = tried("update", policy.update, state, context, whole, number)
    if problem:
        yield problem
        return
    if (change := _changed(state, learned)) is not None:
        yield f"update {where} {change}."
        return
    probe, problem = tried("probe", policy.probe, state)
    if problem or getattr(probe, "shape", None) != shape:
        yield problem or f"probe {where} returns {_kind(probe)}: it must be one number per chain."
    health, problem = tried("health", policy.health, state)
    if problem:
        yield problem
    elif not isinstance(health, dict):
        yield f"health {where} returns {_kind(health)}: return a dictionary of numbers."
    else:
        for name, value in health.items():
            if getattr(value, "shape", None) != shape:
                yield f"health {where} has {_kind(value)} as '{name}': give one number per chain."
    drawn, problem = tried("redraw", lambda s: policy.redraw(key, s), state)
    if problem:
        yield problem
    elif drawn is not None:
        expected = (spec.parameters, *shape)
        if getattr(drawn[0], "shape", None) != expected:
            yield f"redraw {where} returns parameters of {_kind(drawn[0])}: it must be {expected}."
        elif (change := _changed(state, drawn[1])) is not None:
            yield f"redraw {where} {change}."
    if has_method(policy, "noise") != has_method(policy, "decide"):
        yield "noise and decide belong together: define both, or neither."


def _kind(value: Any) -> str:
    """A value in a few words."""
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return f"{value.dtype}{list(value.shape) or ''}"
    return type(value).__name__


def _changed(before: Any, after: Any) -> str | None:
    """How a state's structure changed, which must stay as it is."""
    structures: list[Any] = [jax.tree.structure(x) for x in (before, after)]
    if structures[0] != structures[1]:
        return "returns a state of another structure: return the same fields as init"
    pairs = zip(jax.tree.leaves(before), jax.tree.leaves(after), strict=True)
    for old, new in pairs:
        if _kind(old) != _kind(new):
            return f"turns {_kind(old)} of the state into {_kind(new)}: keep shapes and types"
    return None


def check_play(case: AgentCase, problem: str) -> Findings:
    """Arms that there are, a finite probe, and the shapes of everything that comes out."""
    spec = case.problems[problem].spec
    for live, shape in ((True, ()), (False, (3,))):
        out = case.played(problem, SEEDS[:1] if live else SEEDS, live)
        outside = out.arms[(out.arms < 0) | (out.arms >= spec.arms)]
        if outside.size:
            yield f"act plays arm {outside[0]} of {spec.arms}: arms are 0 to {spec.arms - 1}."
            return
        if out.arms.shape != (ROUNDS, *shape) or out.probe.shape != shape:
            yield f"arms and probe have shapes {out.arms.shape[1:]} and {out.probe.shape}."
            return
        if not np.all(np.isfinite(out.probe)):
            yield f"probe is {shown(np.asarray(out.probe).tolist())} after {ROUNDS} healthy rounds."
            return
        if not all(value.shape == shape for value in out.health.values()):
            yield "health has other shapes than one number per chain."
        if not all(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(out.state)):
            yield "the state holds something that is no array."
        if out.draw is not None and out.draw[0].shape != (spec.parameters, *shape):
            yield f"redraw returns parameters of shape {out.draw[0].shape}."


def check_live(case: AgentCase, problem: str) -> Findings:
    """A live decision is that of the same chain among lanes."""
    among = case.played(problem, SEEDS)
    alone = case.played(problem, SEEDS[:1], live=True)
    same = np.array_equal(alone.arms, among.arms[:, 0])
    if not same or not np.allclose(alone.probe, among.probe[0], rtol=1e-4, atol=1e-5):
        yield "a live decision differs from that of the same chain among others."


def check_apart(case: AgentCase, problem: str) -> Findings:
    """The same program with other neighbours: bit for bit the same chain."""
    a, b = case.played(problem, SEEDS), case.played(problem, (0, 8, 9))
    same = np.array_equal(a.arms[:, 0], b.arms[:, 0]) and np.array_equal(a.probe[0], b.probe[0])
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
        yield "other seeds play the same arms: use the key of act and the rewards of update."


def _uses_numbers(case: AgentCase, problem: str) -> bool:
    """Whether more than one arm is ever played: else seeds cannot differ."""
    return len(np.unique(case.played(problem, SEEDS).arms)) > 1


def check_twins(case: AgentCase, problem: str) -> Findings:
    """What the engine calls instead of `act` decides as `act` does."""
    spec, policy = case.problems[problem].spec, case.policy
    if not has_method(policy, "noise") and not has_method(policy, "arm_of_draw"):
        return
    state = case.played(problem, SEEDS[:1], live=True).state
    context = case.block(problem, SEEDS[:1]).contexts[0, ..., 0]
    keys = jax.random.split(generator.key(5), 6)
    if has_method(policy, "noise"):

        def ahead(key: Any) -> Any:
            return policy.decide(policy.noise(key, spec), state, context)[0]

        if not _same_arms(policy, state, context, keys, ahead):
            yield "decide with the numbers of noise plays other arms than act with the same key."
    if has_method(policy, "arm_of_draw"):

        def drawn(key: Any) -> Any:
            redrawn = policy.redraw(key, state)
            assert redrawn is not None
            return policy.arm_of_draw(redrawn[1], context)

        if not _same_arms(policy, state, context, keys, drawn):
            yield "arm_of_draw after redraw plays other arms than act with the same key."


def _same_arms(policy: Policy, state: Any, context: Any, keys: Any, other: Any) -> bool:
    @functools.partial(jax.jit, compiler_options=_quick())
    def both(key: Any) -> Any:
        return policy.act(key, state, context)[0], other(key)

    return all(int(one) == int(two) for one, two in map(both, keys))


def check_pure(case: AgentCase, problem: str) -> Findings:
    """The same input gives the same output, and tracing twice gives the same program."""
    first = case.played(problem, SEEDS)
    kept = jax.tree.map(np.array, first.state)
    again = case.played(problem, SEEDS)
    leaves = (jax.tree.leaves(x) for x in (kept, first.state, again.state))
    same = all(
        np.array_equal(before, after, equal_nan=True)
        and np.array_equal(before, now, equal_nan=True)
        for before, after, now in zip(*leaves, strict=True)
    )
    inputs = case.inputs(problem, SEEDS, live=False)
    anew = jax.jit(functools.partial(_rounds, case.problems[problem].spec, len(SEEDS)))
    traces = (program.trace(*inputs) for program in (case.player(problem, len(SEEDS)), anew))
    if not same or not _same_program(*traces):
        yield (
            "its functions are not pure: with the same input they do not do the same, so take "
            "random numbers from the key and keep everything in the state."
        )


def _same_program(one: Any, two: Any) -> bool:
    """Whether two traces are the same program, constants included."""
    # Programs with derivatives of their own print the addresses of functions.
    texts = [re.sub(r"0x[0-9a-f]+", "", str(traced.jaxpr.jaxpr)) for traced in (one, two)]
    consts = [[np.asarray(c) for c in t.jaxpr.consts if not _is_key(c)] for t in (one, two)]
    return texts[0] == texts[1] and all(np.array_equal(a, b) for a, b in zip(*consts, strict=True))


def _is_key(value: Any) -> bool:
    return jax.dtypes.issubdtype(getattr(value, "dtype", np.float32), jax.dtypes.prng_key)


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
    """Two sets of settings that differ in every number."""
    pairs = {n: other_values(rule) for n, rule in entry.settings.items() if not rule.static}
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
            same_shape = _changed(one, two) is None
            alike = alike or not same_shape or all(np.array_equal(a, b) for a, b in pairs)
        if alike:
            yield f"the number '{key}' is not an array leaf: a sweep over it needs a program each."


def check_sweep(case: AgentCase, problem: str) -> Findings:
    """A sweep over all numbers is one program and equals the runs one by one."""
    variants = [case.entry.build(values) for values in two_variants(case.entry)]
    if not jax.tree.leaves(variants):
        return
    testbed = case.problems[problem]
    before = set(compiling._programs)
    swept = simulate(testbed, variants, rounds=ROUNDS, seeds=SEEDS, workers=1)
    if sum(key[0] is _play for key in set(compiling._programs) - before) > 1:
        yield "a sweep over its numbers is more than one program: let none of them shape it."
    for g, variant in enumerate(variants):
        alone = simulate(testbed, variant, rounds=ROUNDS, seeds=SEEDS, workers=1)
        if not np.array_equal(swept.arm_counts[g], alone.arm_counts[0]) or not np.allclose(
            swept.curve[g], alone.curve[0], rtol=1e-6, atol=0.0, equal_nan=True
        ):
            yield "a setting gives other results in a sweep than alone."
            return


# ---- testbeds -------------------------------------------------------------------------------


def check_testbed_kinds(testbed: Testbed) -> Findings:
    """What every function of a testbed returns, found without running it."""
    spec: Any
    rounds: Any
    try:
        spec, rounds = testbed.spec, testbed.rounds
    except Exception as error:
        yield f"spec or rounds {_said(error)}"
        return
    if not isinstance(spec, Spec):
        yield f"spec is {_kind(spec)}: return a feelgood.Spec."
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
        yield f"a round {_said(error)}"
        return
    names = ("context", "mean_rewards", "rewards")
    shapes = (spec.context_shape, (spec.arms,), (spec.arms,))
    for name, value, shape in zip(names, seen, shapes, strict=True):
        if getattr(value, "shape", None) != shape or value.dtype != jnp.float32:
            expected = f"float32{list(shape)}"
            yield f"{name} returns {_kind(value)}: with its spec it must be {expected}."


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
    if not same or not _same_program(*(program.trace(testbed, key) for program in programs)):
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
