"""Fixed data, the energy written out from its formula in float64, and many chains of an agent.

Parameters are flat vectors here: entry `i * blocks + a` is θ[i, a]. `features[t, a]` is the vector
whose inner product with the flat θ is the score of arm `a` in round `t`, for both kinds of context.
"""

import dataclasses
import functools
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from scipy import special

from feelgood import AGENTS, Spec
from feelgood.agents import grammar
from feelgood.agents.grammar import all_names
from feelgood.agents.thompson import Mode, Thompson, ThompsonState
from feelgood.core.spec import Layout
from feelgood.targets.evaluators.seed_strips import SeedStore
from feelgood.targets.history import Rows
from feelgood.targets.observations import Data
from feelgood.targets.random_batches import BatchGrams
from feelgood.targets.sums import Stats

PLAIN = tuple(name for name in all_names() if "lam" not in AGENTS[name].settings)
WITH_BONUS = tuple(name for name in all_names() if "lam" in AGENTS[name].settings)

#: What is not said otherwise.
PAPERS: dict[str, Any] = {
    **{"beta": 1.0, "eta": 1.0, "rho": 0.01, "lambda_reg": 1.0, "early": 1},
    "lam_schedule": "constant",
}
#: Temperature, weights and so on that are not 1, so that a factor left out shows.
SETTINGS: dict[str, Any] = {
    "beta": 2.5,
    "eta": 0.8,
    "rho": 0.3,
    "lambda_reg": 1.7,
    "gamma": 0.8,
    "leapfrog": 2,
    "batch": 8,
    "snapshot": 3,
}


#: Less optimisation: the programs of the proofs are compiled for longer than they run.
QUICKLY = {"xla_backend_optimization_level": 1} if jax.default_backend() == "cpu" else None
quick_jit = functools.partial(eqx.filter_jit, compiler_options=QUICKLY)


@dataclasses.dataclass(frozen=True, eq=False)
class Problem:
    """Some rounds of a bandit, as float32 numbers. Equal only to itself, and so hashable."""

    spec: Spec
    contexts: np.ndarray
    arms: np.ndarray
    rewards: np.ndarray

    @property
    def rounds(self) -> int:
        return len(self.arms)

    @property
    def features(self) -> np.ndarray:
        """[rounds, arms, parameters] in float64."""
        spec, x = self.spec, self.contexts.astype(np.float64)
        if spec.shared:
            return np.swapaxes(x, 1, 2)
        eye = np.eye(spec.arms)
        return np.einsum("td,ab->tadb", x, eye).reshape(self.rounds, spec.arms, -1)

    @property
    def played(self) -> np.ndarray:
        """[rounds, parameters]: the features of the played arms."""
        return self.features[np.arange(self.rounds), self.arms]

    def taking(self, order: np.ndarray) -> "Problem":
        """These rounds, in this order."""
        return Problem(self.spec, self.contexts[order], self.arms[order], self.rewards[order])


def problem(spec: Spec, rounds: int) -> Problem:
    """Data that look like a bandit's; the same in every run of the tests."""
    rng = np.random.default_rng([spec.arms, spec.dim, spec.shared, rounds])
    contexts = rng.normal(size=(rounds, *spec.context_shape))
    arms = rng.integers(0, spec.arms, rounds)
    blank = Problem(spec, contexts.astype(np.float32), arms.astype(np.int32), np.zeros(rounds))
    scores = blank.played @ rng.normal(size=spec.parameters)
    if spec.rewards == "bernoulli":
        rewards = (rng.random(rounds) < 1.0 / (1.0 + np.exp(-scores))).astype(np.float64)
    else:
        rewards = scores + 0.5 * rng.normal(size=rounds)
    return dataclasses.replace(blank, rewards=rewards.astype(np.float32))


@dataclasses.dataclass(frozen=True)
class Formula:
    """L(θ) = Σ_s [η ℓ(f_θ(x_s, a_s), r_s) − λ_s φ(max_a f_θ(x_s, a))] + ρ‖θ‖², in float64.

    φ(g) = min(b, g) for s = ∞, and b − softplus(s(b − g))/s otherwise. The f of the bonus is the
    mean reward, 1/(1 + e^(−score)) for Bernoulli rewards, or with `on = "score"` the score.
    λ_s is `lam`, or with `sqrt` that divided by √s, s counted from 1.
    """

    problem: Problem
    eta: float = 1.0
    rho: float = 0.01
    lam: float = 0.0
    b: float = 1000.0
    s: float = np.inf
    on: str = "mean"
    sqrt: bool = False

    @property
    def linked(self) -> bool:
        """Whether the bonus sees the scores through the link."""
        return self.on == "mean" and self.problem.spec.rewards == "bernoulli"

    @property
    def weights(self) -> np.ndarray:
        """λ_s of every round."""
        rounds = np.arange(1.0, self.problem.rounds + 1.0)
        return self.lam * (rounds**-0.5 if self.sqrt else np.ones_like(rounds))

    def terms(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The data terms and the bonus terms of every round, for θ [points, parameters]."""
        spec, data = self.problem.spec, self.problem
        scores = np.einsum("tap,np->nta", data.features, theta, optimize=True)
        f = scores[:, np.arange(data.rounds), data.arms]
        r = data.rewards.astype(np.float64)
        loss = np.logaddexp(0.0, f) - r * f if spec.rewards == "bernoulli" else (f - r) ** 2
        g = scores.max(axis=2)
        if self.linked:
            g = special.expit(g)
        if np.isinf(self.s):
            phi = np.minimum(self.b, g)
        else:
            phi = self.b - np.logaddexp(0.0, self.s * (self.b - g)) / self.s
        return self.eta * loss, self.weights * phi

    def value(self, theta: np.ndarray) -> np.ndarray:
        """L at θ [..., parameters]."""
        flat = theta.reshape(-1, theta.shape[-1])
        parts = [
            np.sum(np.subtract(*self.terms(part)), axis=1) + self.rho * np.sum(part**2, axis=1)
            for part in np.array_split(flat, 1 + len(flat) // 20_000)
        ]
        return np.concatenate(parts).reshape(theta.shape[:-1])

    def gradient(self, theta: np.ndarray, step: float = 1e-5) -> np.ndarray:
        """∇L at θ [..., parameters] by central differences."""
        moves = step * np.eye(theta.shape[-1])
        sides = [(self.value(theta + e) - self.value(theta - e)) / (2.0 * step) for e in moves]
        return np.stack(sides, axis=-1)

    def size(self, theta: np.ndarray) -> np.ndarray:
        """The sizes of all terms at θ [points, parameters]: rounding errors go with them.

        A squared loss counts as (‖x‖‖θ‖ + |r|)²: it is computed from Σ x xᵀ and Σ r x.
        """
        loss, bonus = self.terms(theta)
        if self.problem.spec.rewards == "squared":
            loss = self.eta * self._reach(theta) ** 2
        sizes = np.sum(np.abs(loss) + np.abs(bonus), axis=1)
        return sizes + self.rho * np.sum(theta**2, axis=1)

    def gradient_size(self, theta: np.ndarray) -> np.ndarray:
        """The same for the gradient."""
        data = self.problem
        reach = self._reach(theta)
        slope = np.ones_like(reach) if data.spec.rewards == "bernoulli" else 2.0 * reach
        loss = self.eta * np.sum(slope * np.linalg.norm(data.played, axis=1), axis=1)
        bonus = np.sum(self.weights * np.linalg.norm(data.features, axis=2).max(axis=1))
        return loss + bonus + 2.0 * self.rho * np.abs(theta).max(axis=1)

    def _reach(self, theta: np.ndarray) -> np.ndarray:
        """‖x‖‖θ‖ + |r| of every round."""
        lengths = np.linalg.norm(self.problem.played, axis=1)
        return lengths * np.linalg.norm(theta, axis=1)[:, None] + np.abs(self.problem.rewards)

    def corner_distance(self, theta: np.ndarray) -> np.ndarray:
        """How near θ [points, parameters] is to a corner of L, in units of the scores."""
        scores = np.sort(np.einsum("tap,np->nta", self.problem.features, theta), axis=2)
        best, lead = scores[:, :, -1], scores[:, :, -1] - scores[:, :, -2]
        capped = special.expit(best) if self.linked else best
        cap = np.abs(capped - self.b) if np.isinf(self.s) else np.inf
        return np.min(np.minimum(lead, cap), axis=1)


def formula_of(policy: Thompson, data: Problem, **fixed: float) -> Formula:
    """The energy that an agent with these settings has to sample."""
    values = {"eta": float(policy.eta), "rho": float(policy.rho)}
    if policy.bonus is not None:
        bonus = policy.bonus
        names = ("lam", "b", "s") if hasattr(bonus, "s") else ("lam", "b")
        values |= {n: float(getattr(bonus, n)) for n in names if n not in fixed}
        if bonus.lam_schedule == "prior-mass":
            values["lam"] = np.sqrt(-2.0 * np.log(float(bonus.prior_mass)) / float(bonus.horizon))
        form = {"on": bonus.bonus_on, "sqrt": bonus.lam_schedule == "sqrt"}
        return Formula(data, **(values | fixed), **form)
    return Formula(data, **(values | fixed))


def agent(name: str, **values: Any) -> Thompson:
    """The agent of this name with those of the settings that it has, in the paper's words."""
    entry = AGENTS[name]
    given = {**PAPERS, **values}
    policy = entry.build({n: v for n, v in given.items() if n in entry.settings})
    assert isinstance(policy, Thompson)
    return policy


def parts_of(name: str) -> set[tuple[str, Any]]:
    """What the name of an agent is made of: of each part, one agent is a quick test."""
    parts = grammar.parts_of(name)
    assert parts is not None
    return {
        ("kernel", parts.kernel),
        ("bonus", parts.bonus_name),
        ("preconditioned", parts.preconditioned),
    }


def kinds_of(name: str) -> set[tuple[str, Any]]:
    """The same where it matters only whether a kernel has a filter, and not which it is."""
    parts = grammar.parts_of(name)
    assert parts is not None
    return {("adjusted", parts.kernel.adjusted), *parts_of(name)} - {("kernel", parts.kernel)}


# ---- an agent that has seen the data --------------------------------------------------------


def flat(theta: Any) -> np.ndarray:
    """[dim, blocks, *lanes] as [*lanes, parameters] in float64."""
    array = np.asarray(theta, np.float64)
    return np.moveaxis(array.reshape(-1, *array.shape[2:]), 0, -1)


def unflat(theta: np.ndarray, spec: Spec) -> jax.Array:
    """[*lanes, parameters] as [dim, blocks, *lanes] in float32."""
    leading = np.moveaxis(theta, -1, 0)
    return jnp.asarray(leading.reshape(spec.dim, spec.blocks, *theta.shape[:-1]), jnp.float32)


@quick_jit
def _fed(policy: Thompson, state: Any, rounds: tuple[Any, ...]) -> Any:
    """The state after some rounds, in one program."""

    def one(t: Any, state: Any) -> Any:
        return policy.update(state, *(x[t] for x in rounds))

    return jax.lax.fori_loop(0, rounds[1].shape[0], one, state)


def fed(policy: Thompson, state: ThompsonState, data: Problem, rounds: range) -> ThompsonState:
    """The state after these rounds of `data`, the same for all its chains."""
    lanes = state.chain.theta.shape[2:]
    part = slice(rounds.start, rounds.stop)

    def each(x: np.ndarray) -> jax.Array:
        return jnp.broadcast_to(x.reshape(*x.shape, *(1 for _ in lanes)), (*x.shape, *lanes))

    stored = (data.contexts[part], data.arms[part], data.rewards[part])
    return _fed(policy, strong(state), tuple(map(each, stored)))


def with_lanes(spec: Spec, lanes: int, settings: int = 1) -> Spec:
    """The same problem for so many chains; so many of them are settings of one seed."""
    return dataclasses.replace(spec, layout=Layout(chains=lanes, settings=settings))


def learned(policy: Thompson, data: Problem, lanes: int | None = None) -> ThompsonState:
    """The agent's state after the rounds of `data`; with `lanes`, that of so many equal chains."""
    spec = data.spec if lanes is None else with_lanes(data.spec, 1)
    key = jax.random.key(0) if lanes is None else jax.random.split(jax.random.key(0), 1)
    state = policy.reserve(policy.init(key, spec), data.rounds)
    state = fed(policy, state, data, range(data.rounds))
    return state if lanes is None else widened(policy, state, lanes)


def widened(policy: Thompson, state: ThompsonState, lanes: int) -> ThompsonState:
    """One chain's data given to many chains, with no more room than there are rounds.

    They are settings of one seed: all have the same contexts.
    """

    def last(x: jax.Array) -> jax.Array:
        return jnp.broadcast_to(x, (*x.shape[:-1], lanes))

    def stored(x: jax.Array) -> jax.Array:
        rounds = int(state.data.count)
        return jnp.broadcast_to(x[..., :rounds], (*x.shape[:-2], lanes, rounds))

    spec = with_lanes(state.spec, lanes, lanes)
    many = policy.init(jax.random.split(jax.random.key(0), lanes), spec)
    rows = state.data.rows
    if rows is not None:
        rows = Rows(
            contexts=None if rows.contexts is None else stored(rows.contexts),
            features=None if rows.features is None else stored(rows.features),
            arms=stored(rows.arms),
            rewards=stored(rows.rewards),
            filled=rows.filled,
            spec=spec,
        )
    grams = state.data.grams
    data = Data(
        Stats(*map(last, state.data.stats)),
        rows,
        state.data.count,
        None if grams is None else BatchGrams(last(grams.grams), grams.size),
    )
    root = None if state.root is None else last(state.root)
    mode = None if state.mode is None else Mode(*map(last, state.mode))
    chain = many.chain
    if isinstance(chain.memo, SeedStore):
        chain = chain._replace(memo=chain.memo._replace(shown=state.chain.memo.shown))
    return eqx.tree_at(
        lambda s: (s.data, s.chain, s.root, s.mode),
        many,
        (data, chain, root, mode),
        is_leaf=lambda leaf: leaf is None,
    )


def with_contexts(rows: Rows, data: Problem) -> Rows:
    """The same where an agent's evaluator keeps the contexts: as passes read them from rows."""
    shown = jnp.moveaxis(jnp.asarray(data.contexts), 0, -1)  # the rounds on the last axis
    shown = jnp.pad(shown, [(0, 0)] * (shown.ndim - 1) + [(0, rows.capacity - data.rounds)])
    if rows.spec.lanes:
        shown = jnp.broadcast_to(
            shown[..., None, :], (*shown.shape[:-1], *rows.spec.lanes, shown.shape[-1])
        )
    return eqx.tree_at(lambda r: r.contexts, rows, shown, is_leaf=lambda leaf: leaf is None)


def starting_at(
    state: ThompsonState, theta: np.ndarray, velocity: np.ndarray | None = None
) -> ThompsonState:
    """The state with its chains moved to θ [lanes, parameters]."""
    chain = state.chain._replace(theta=unflat(theta, state.spec))
    if velocity is not None:
        chain = chain._replace(velocity=unflat(velocity, state.spec))
    return eqx.tree_at(lambda s: s.chain, state, chain)


def strong(tree: Any) -> Any:
    """Arrays without weak types, for which the same program would be compiled again."""
    return jax.tree.map(lambda x: jax.lax.convert_element_type(x, x.dtype), tree)


class Ends(NamedTuple):
    """Where chains ended, [lanes, parameters], and how often they accepted."""

    theta: np.ndarray
    velocity: np.ndarray | None
    acceptance: float


def run_chains(policy: Thompson, state: ThompsonState, key: jax.Array, draws: int) -> Ends:
    """`draws` rounds of inner steps of every chain, with no new data."""
    lanes = state.chain.theta.shape[-1]
    draw = quick_jit(lambda p, k, s: p.draw(k, s))  # a new function: compiled as it is now
    for i in range(draws):
        state = draw(policy, jax.random.split(jax.random.fold_in(key, i), lanes), strong(state))
    chain = state.chain
    velocity = flat(chain.velocity) if hasattr(chain, "velocity") else None
    return Ends(flat(chain.theta), velocity, float(np.mean(state.info.acceptance)))


def tuning_of(policy: Thompson, state: ThompsonState) -> Any:
    """Step size, temperature and preconditioner of the next round."""
    return policy._tuning(state, policy.energy(state.spec))
