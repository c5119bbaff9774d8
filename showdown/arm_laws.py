"""How often samplers draw each arm along one recorded history, beside the exact law.

`python -m showdown arm-laws` follows every sampler of the study `worlds-samplers` and keeps what it
finds in `results/arm_laws.csv`. The history is one run of `exact-fgts`: its arms and rewards are
given to many chains of a sampler, whatever these would have played. So the law is the same number
for all of them in every round, and chains are independent of each other.
"""

import csv
import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from feelgood import AGENTS, TESTBEDS, Spec
from feelgood.core.policy import Amount
from feelgood.core.spec import Layout
from feelgood.engine.lifting import for_lanes
from feelgood.studies import Study, read_study

FILE = "arm_laws.csv"
STUDY, WORLD = "worlds-samplers", "bad"
ROUNDS, CHAINS = 300, 256
#: Shares are taken over so many stretches of equal length.
STRETCHES = 10
LAW = "exact-fgts"


@dataclasses.dataclass(frozen=True)
class ArmLaw:
    """How often a sampler draws the worse arm in one stretch of the history."""

    agent: str
    temperature: float
    #: The first and the last round of the stretch.
    first: int
    last: int
    #: The exact probability, mean over the stretch, at the same temperature.
    law: float
    #: The sampler's share, and the error of that mean over its chains.
    share: float
    error: float
    #: Chains that draw one arm alone in the stretch.
    single: int
    chains: int


class History(NamedTuple):
    """Rounds that the exact agent played; fixed arms, so that one context is all."""

    spec: Spec
    context: jax.Array
    arms: jax.Array
    rewards: jax.Array


def record(testbed: str, told: Mapping[str, Any], settings: Mapping[str, Any]) -> History:
    """The history, the same whenever it is recorded."""
    bed = TESTBEDS[testbed].build(dict(told))
    policy, start = AGENTS[LAW].build(dict(settings)), jax.random.key(21)
    state = bed.init(start)
    context = bed.context(start, state, jnp.array(0))
    means = bed.mean_rewards(state, context, jnp.array(0))

    def one(inner: Any, key: jax.Array) -> Any:
        keys = jax.random.split(key)
        arm = policy.choose(_noise(keys[0], policy.needs(bed.spec).choose), inner, context)
        reward = bed.rewards(keys[1], state, means)[arm]
        return policy.update(inner, context, arm, reward), (arm, reward)

    _, (arms, rewards) = jax.jit(lambda s: jax.lax.scan(one, s, jax.random.split(start, ROUNDS)))(
        policy.init(start, bed.spec)
    )
    return History(bed.spec, context, arms, rewards)


def law_along(history: History, settings: Mapping[str, Any]) -> np.ndarray:
    """The exact probability of arm 1 before every round."""
    policy = AGENTS[LAW].build(dict(settings))
    pmf = policy.hints(history.spec).pmf
    assert pmf is not None

    def one(state: Any, seen: Any) -> Any:
        law = pmf(state, history.context)
        return policy.update(state, history.context, *seen), law[1]

    start = policy.init(jax.random.key(0), history.spec)
    seen = (history.arms, history.rewards)
    _, laws = jax.jit(lambda s: jax.lax.scan(one, s, seen))(start)
    return np.asarray(laws, np.float64)


def arms_along(history: History, agent: str, settings: Mapping[str, Any]) -> np.ndarray:
    """Which arm every chain would play in every round, [rounds, chains]."""
    spec = dataclasses.replace(history.spec, layout=Layout(chains=CHAINS))
    one = AGENTS[agent].build(dict(settings))
    policy = for_lanes(one, spec, one.hints(spec).layout)
    needs = policy.needs(spec)

    def each(x: jax.Array) -> jax.Array:
        return jnp.broadcast_to(x[..., None], (*x.shape, CHAINS))

    def round_(state: Any, seen: Any) -> Any:
        key, arm, reward = seen
        draw, choose = jax.random.split(key)
        state = policy.draw(_noise(draw, needs.draw, CHAINS), state)
        noise = _noise(choose, needs.choose, CHAINS)
        played = policy.choose(noise, state, each(history.context))
        return policy.update(state, each(history.context), each(arm), each(reward)), played

    def run(policy_keys: jax.Array, keys: jax.Array) -> Any:
        state = policy.reserve(policy.init(policy_keys, spec), ROUNDS)
        return jax.lax.scan(round_, state, (keys, history.arms, history.rewards))[1]

    start, along = jax.random.split(jax.random.key(22))
    keys = jax.random.split(along, ROUNDS)
    return np.asarray(jax.jit(run)(jax.random.split(start, CHAINS), keys))


def _noise(key: jax.Array, amount: Amount, *lanes: int) -> Any:
    """The random numbers of one call, as the agent asks for them, for one chain or for many."""
    if amount == "key":
        return jax.random.split(key, lanes) if lanes else key
    return jax.random.normal(key, (amount, *lanes)) if amount else None


def stretches(agent: str, heat: float, played: np.ndarray, law: np.ndarray) -> list[ArmLaw]:
    """Shares of arm 1 by stretch, each chain a sample of one."""
    found = []
    for rows in np.split(np.arange(len(law)), STRETCHES):
        shares = played[rows].mean(axis=0)
        found.append(
            ArmLaw(
                *(agent, heat, int(rows[0]) + 1, int(rows[-1]) + 1, float(law[rows].mean())),
                share=float(shares.mean()),
                error=float(shares.std(ddof=1)) / math.sqrt(len(shares)),
                single=int(np.sum((shares == 0.0) | (shares == 1.0))),
                chains=len(shares),
            )
        )
    return found


def measure(
    studies: Path, note: Callable[[str], None], only: Sequence[str] = ()
) -> Iterable[ArmLaw]:
    """All samplers of the study, or some, each at its temperature."""
    plan = read_study(studies / f"{STUDY}.toml").plan
    assert isinstance(plan, Study)
    cells = {
        (c.agent, float(c.settings["temperature"])): c
        for c in plan.cells
        if c.testbed_settings["world"] == WORLD
    }
    cold = cells[LAW, 1.0]
    history = record(cold.testbed, cold.testbed_settings, cold.settings)
    for (agent, heat), cell in cells.items():
        if cell.settings.get("lam", 0) and (not only or agent in only):
            law = law_along(history, {**cold.settings, "temperature": heat})
            note(f"{agent} at temperature {heat:g}")
            yield from stretches(agent, heat, arms_along(history, agent, cell.settings), law)


def write(folder: Path, rows: Iterable[ArmLaw]) -> Path:
    """Keep them, six digits each."""
    path, found = folder / FILE, list(rows)
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(field.name for field in dataclasses.fields(ArmLaw))
        for row in found:
            table.writerow(
                f"{v:.6g}" if isinstance(v, float) else v for v in dataclasses.astuple(row)
            )
    return path


def read(folder: Path) -> list[ArmLaw]:
    """What is kept; nothing where there is no file."""
    path = folder / FILE
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return [
            ArmLaw(
                row["agent"],
                float(row["temperature"]),
                int(row["first"]),
                int(row["last"]),
                float(row["law"]),
                float(row["share"]),
                float(row["error"]),
                int(row["single"]),
                int(row["chains"]),
            )
            for row in csv.DictReader(file)
        ]
