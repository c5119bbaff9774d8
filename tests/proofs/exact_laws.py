"""The exact agents' law of the arms, computed again from its definition in float64.

Nothing here is shared with the agents: members are weighed by every single reward, normal means are
those of a linear model with all its parameters, and the largest value is found on a grid.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from proofs.levels import Check, close, generator_for
from proofs.targets import quick_jit
from scipy import special

from feelgood import AGENTS, Policy, Spec
from feelgood.core.knowledge import FiniteClass, GaussianArms
from feelgood.numerics.tilted_choice import NormalValues, tilted_choices, two_choices

#: Probabilities in float32, from exponents of some tens.
ROUNDING = 2e-5


@dataclasses.dataclass(frozen=True)
class Played:
    """Some rounds of fixed arms."""

    arms: np.ndarray
    rewards: np.ndarray

    @classmethod
    def made(cls, label: str, rounds: int, means: Sequence[float], noise: float) -> "Played":
        rng = generator_for(label)
        arms = rng.integers(0, len(means), rounds)
        return cls(arms, np.asarray(means)[arms] + noise * rng.normal(size=rounds))


@dataclasses.dataclass(frozen=True)
class Bonus:
    """λ_s φ of the best mean; a float cap is hard, a sharpness smooths it."""

    lam: float = 0.0
    sqrt: bool = False
    cap: float = np.inf
    sharpness: float | None = None
    temperature: float = 1.0

    def total(self, rounds: int) -> float:
        """Λ after so many rounds."""
        return float(
            sum(self.lam / (np.sqrt(s) if self.sqrt else 1.0) for s in range(1, rounds + 1))
        )

    def phi(self, best: Any) -> Any:
        if self.sharpness is None:
            return np.minimum(self.cap, best)
        return self.cap - np.log1p(np.exp(self.sharpness * (self.cap - best))) / self.sharpness

    def settings(self) -> dict[str, Any]:
        """The same in the agent's words."""
        own: dict[str, Any] = {"lam": self.lam, "temperature": self.temperature}
        own["lam_schedule"] = "sqrt" if self.sqrt else "constant"
        if np.isfinite(self.cap):
            own["b"] = self.cap
        return own | ({} if self.sharpness is None else {"s": self.sharpness})


def agents_law(spec: Spec, played: Played, bonus: Bonus, **more: Any) -> np.ndarray:
    """What the agent says of the next round."""
    policy = AGENTS["exact-fgts"].build(bonus.settings() | more)
    contexts = np.ones((len(played.arms), *spec.context_shape))
    return laws_after(policy, spec, contexts, played, np.ones((1, *spec.context_shape)))[0]


def laws_after(
    policy: Policy, spec: Spec, contexts: np.ndarray, played: Played, shown: np.ndarray
) -> np.ndarray:
    """The probabilities in each of the contexts `shown`, after some rounds."""
    pmf = policy.hints(spec).pmf
    assert pmf is not None
    seen = (
        jnp.asarray(contexts, jnp.float32),
        jnp.asarray(played.arms, jnp.int32),
        jnp.asarray(played.rewards, jnp.float32),
    )

    @quick_jit
    def last(*seen: Any) -> Any:
        start = policy.init(jax.random.key(0), spec)
        state, _ = jax.lax.scan(lambda s, now: (policy.update(s, *now), None), start, seen)
        return jax.vmap(lambda context: pmf(state, context))(jnp.asarray(shown, jnp.float32))

    return np.asarray(last(*seen), np.float64)


# ---- finite classes ---------------------------------------------------------------------------


def enumerated(known: FiniteClass, played: Played, bonus: Bonus) -> np.ndarray:
    """Reward by reward, member by member."""
    means = np.asarray(known.means)
    score = np.log(known.masses)
    for arm, reward in zip(played.arms, played.rewards, strict=True):
        score = score - 0.5 * ((reward - means[:, arm]) / known.noise) ** 2
    score = score + bonus.total(len(played.arms)) * bonus.phi(means.max(axis=1))
    weight = special.softmax(score / bonus.temperature)
    best = means.argmax(axis=1)
    return np.array([weight[best == arm].sum() for arm in range(means.shape[1])])


THREE = FiniteClass(
    means=((0.1, 0.3, -0.2), (0.4, 0.0, 0.2), (0.2, 0.5, 0.9), (0.1, -0.3, 1.4), (0.6, 0.5, 0.1)),
    masses=(0.3, 0.4, 0.2, 0.02, 0.08),
    noise=0.7,
)
BONUSES = {
    "none": Bonus(),
    "constant": Bonus(lam=0.4),
    "falling": Bonus(lam=1.5, sqrt=True),
    "capped": Bonus(lam=0.8, cap=0.6),
    "smoothed": Bonus(lam=0.8, cap=0.6, sharpness=5.0),
    "tempered": Bonus(lam=0.4, temperature=3.0),
}


def finite_checks(kind: str) -> list[Check]:
    """A class of five over three arms, with one kind of bonus."""
    bonus, checks = BONUSES[kind], []
    for rounds in (0, 7, 15):
        played = Played.made(f"finite {rounds}", rounds, (0.2, 0.5, 0.4), THREE.noise)
        got = agents_law(Spec(arms=3, dim=1, known=THREE), played, bonus)
        want = enumerated(THREE, played, bonus)
        checks.append(close(f"finite class, {kind}, {rounds} rounds", got, want, ROUNDING))
    return checks


# ---- normal means -----------------------------------------------------------------------------


def linear_posterior(
    features: np.ndarray, played: Played, prior: np.ndarray, noise: float
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of the arms' values X θ, θ ~ N(0, diag(prior²)), by all parameters."""
    precision = np.diag(1.0 / prior**2)
    pull = np.zeros(len(prior))
    for arm, reward in zip(played.arms, played.rewards, strict=True):
        precision = precision + np.outer(features[arm], features[arm]) / noise**2
        pull = pull + reward * features[arm] / noise**2
    covariance = np.linalg.inv(precision)
    return features @ covariance @ pull, features @ covariance @ features.T


def largest_of_two(
    mean: np.ndarray, covariance: np.ndarray, weight: float, phi: Callable[[Any], Any]
) -> np.ndarray:
    """By the definition, on a grid: e^{Λφ(max)} times the density, summed where each is larger.

    The values are (sum ± difference)/2. The difference has cells on both sides of 0, and the sum a
    normal law given the difference.
    """
    turn = np.array([[1.0, -1.0], [1.0, 1.0]])
    (centre, middle), spread = turn @ mean, turn @ covariance @ turn.T
    # The law is within a dozen deviations of the plain mean and of both tilted ones.
    ways = np.array([np.zeros(2), *(weight * spread @ [sign / 2.0, 0.5] for sign in (1.0, -1.0))])
    deviation, slope = np.sqrt(spread[0, 0]), spread[0, 1] / spread[0, 0]
    low, high = centre + ways[:, 0].min() - 9 * deviation, centre + ways[:, 0].max() + 9 * deviation
    cell = (high - low) / 1200
    difference = (np.arange(np.floor(low / cell), np.ceil(high / cell)) + 0.5) * cell
    left = np.sqrt(max(spread[1, 1] - slope * spread[0, 1], 0.0))
    z = np.linspace(-9.0, 9.0 + weight * left, 500)
    total = middle + slope * (difference[:, None] - centre) + left * z
    best = 0.5 * (total + np.abs(difference)[:, None])
    score = weight * phi(best) - 0.5 * ((difference[:, None] - centre) / deviation) ** 2 - z**2 / 2
    mass = np.exp(score - score.max()).sum(axis=1)
    share = float(mass[difference > 0].sum() / mass.sum())
    return np.array([share, 1.0 - share])


def largest_of_many(
    mean: np.ndarray, deviation: np.ndarray, weight: float, cap: float
) -> np.ndarray:
    """∫ e^{Λ min(b, v)} φ_a(v) Π_{j≠a} Φ_j(v) dv in float64: trapezia at all scales."""
    tilted = mean + weight * deviation**2
    near = np.linspace(-10.0, 10.0, 4001)[:, None] * deviation
    corner = cap + np.linspace(-60.0, 60.0, 8001) / max(weight, 1.0)
    v = np.unique(np.concatenate([*(mean + near), *(tilted + near), corner[np.isfinite(corner)]]))
    z = (v - mean[:, None]) / deviation[:, None]
    below = special.log_ndtr(z)
    own = -0.5 * z**2 - np.log(deviation)[:, None]
    score = weight * np.minimum(cap, v) + own + below.sum(axis=0) - below
    mass = np.trapezoid(np.exp(score - score.max()), v, axis=1)
    return mass / mass.sum()


#: Of the values of two arms: features of a linear model, with the parameters' prior deviations.
PAIRS = {
    "independent": (np.array([[0.6, 0.8, 0.0], [0.0, 0.0, 1.0]]), np.array([1.0, 1.0, 0.5])),
    "correlated": (np.array([[1.0, 0.4, 0.0], [0.3, 0.9, 0.5]]), np.array([0.8, 1.0, 0.6])),
    "opposite": (np.array([[1.0], [-1.0]]), np.array([0.7])),
}
NORMAL_BONUSES = {
    "none": Bonus(),
    "constant": Bonus(lam=0.06),
    "falling": Bonus(lam=0.4, sqrt=True),
    "capped": Bonus(lam=0.3, cap=0.4),
    "tempered": Bonus(lam=0.1, temperature=2.0),
}


def normal_known(features: np.ndarray, prior: np.ndarray, noise: float) -> GaussianArms:
    covariance = (features * prior**2) @ features.T
    rows = tuple(tuple(float(x) for x in row) for row in covariance)
    return GaussianArms((0.0,) * len(features), rows, noise)


def pair_checks(kind: str) -> list[Check]:
    """Two arms of a linear model, alone and together with what they share."""
    bonus, checks, noise = NORMAL_BONUSES[kind], [], 0.9
    for pair, (features, prior) in PAIRS.items():
        spec = Spec(arms=2, dim=1, known=normal_known(features, prior, noise))
        played = Played.made(f"pair {pair}", 25, (0.5, 0.4), noise)
        mean, covariance = linear_posterior(features, played, prior, noise)
        weight, heat = bonus.total(25), bonus.temperature
        want = largest_of_two(mean, heat * covariance, weight / heat, bonus.phi)
        got = agents_law(spec, played, bonus)
        checks.append(close(f"{pair} arms, {kind}", got, want, ROUNDING))
    return checks


def many_checks(kind: str, cases: Sequence[tuple[int, int]] = ((3, 20),)) -> list[Check]:
    """Independent arms with priors of their own; cases are numbers of arms and of rounds."""
    bonus, checks, noise = NORMAL_BONUSES[kind], [], 0.8
    for arms, rounds in cases:
        rng = generator_for(f"many {arms} {rounds}")
        prior = rng.uniform(0.3, 1.5, arms)
        played = Played.made(f"many {arms} {rounds}", rounds, 0.1 * rng.normal(size=arms), noise)
        features = np.eye(arms)
        mean, covariance = linear_posterior(features, played, prior, noise)
        heat = bonus.temperature
        deviation = np.sqrt(heat * np.diag(covariance))
        want = largest_of_many(mean, deviation, bonus.total(rounds) / heat, bonus.cap)
        spec = Spec(arms=arms, dim=1, known=normal_known(features, prior, noise))
        got = agents_law(spec, played, bonus)
        checks.append(close(f"{arms} arms, {kind}, {rounds} rounds", got, want, ROUNDING))
    return checks


def clip_checks(kind: str) -> list[Check]:
    """Arms below ε are left out, and the others keep their proportions; one arm is always left."""
    bonus, checks = BONUSES[kind], []
    for rounds in (0, 7):
        played = Played.made(f"finite {rounds}", rounds, (0.2, 0.5, 0.4), THREE.noise)
        whole = enumerated(THREE, played, bonus)
        for clip in (0.1, 0.25, 0.99):
            kept = np.where(whole >= min(clip, whole.max()), whole, 0.0)
            got = agents_law(Spec(arms=3, dim=1, known=THREE), played, bonus, clip=clip)
            label = f"clipped at {clip}, {kind}, {rounds} rounds"
            checks.append(close(label, got, kept / kept.sum(), ROUNDING))
    return checks


def copy_checks(kind: str) -> list[Check]:
    """Three copies of two arms: each has the law of its own rounds, with its own weights of λ."""
    bonus, noise, copies = NORMAL_BONUSES[kind], 0.9, 3
    rng = generator_for("copies")
    features = np.array([[0.6, 0.8, 0.0], [0.0, 0.0, 1.0]])
    spec = Spec(arms=2, dim=9, shared=True, known=GaussianArms.alone((1.0, 1.0), noise, copies))
    which = rng.integers(0, copies, 45)
    shown = np.zeros((copies, copies, 3, 2))
    shown[np.arange(copies), np.arange(copies)] = features.T
    contexts = shown.reshape(copies, 9, 2)
    played = Played.made("copies", len(which), (0.5, 0.4), noise)
    policy = AGENTS["exact-fgts"].build(bonus.settings())
    every, checks = laws_after(policy, spec, contexts[which], played, contexts), []
    for copy, got in enumerate(every):
        own = Played(played.arms[which == copy], played.rewards[which == copy])
        mean, covariance = linear_posterior(features, own, np.ones(3), noise)
        rounds = np.flatnonzero(which == copy) + 1.0
        weight = float(np.sum(bonus.lam * rounds ** (-0.5 if bonus.sqrt else 0.0)))
        heat = bonus.temperature
        want = largest_of_two(mean, heat * covariance, weight / heat, bonus.phi)
        checks.append(close(f"copy {copy}, {kind}", got, want, ROUNDING))
    return checks


def extreme_checks(arms: int, cases: int = 40) -> list[Check]:
    """Weights up to 10,000, values up to 50 and deviations from 0.001 to 1, with and without a cap.

    All cases are lanes of one call. Float32 keeps what is left of the exponents: their sizes times
    its precision.
    """
    rng = generator_for(f"extremes {arms}")
    variance = np.float32(10.0 ** rng.uniform(-6.0, 0.0, (arms, cases)))
    weight = np.float32(10.0 ** rng.uniform(-1.0, 4.0, cases))
    # Values for which the arms' exponents Λm + Λ²s²/2 are near each other.
    centre, apart = rng.uniform(-50.0, 50.0, cases), rng.normal(size=(arms, cases)) / weight
    mean = np.float32(centre - 0.5 * weight * variance + apart)
    tilted = mean + weight * variance
    cap = np.float32(rng.uniform(mean.min(axis=0), tilted.max(axis=0) + 1.0))
    law = NormalValues(jnp.asarray(mean), jnp.asarray(variance))
    found = {
        "no cap": tilted_choices(law, jnp.asarray(weight)),
        "cap": tilted_choices(law, jnp.asarray(weight), jnp.asarray(cap)),
    }
    if arms == 2:
        found["closed form"] = two_choices(law, jnp.asarray(weight))
    m, v, w = (np.asarray(x, np.float64) for x in (mean, variance, weight))
    spans = np.ptp(np.concatenate([mean, tilted]), axis=0) + np.sqrt(variance.max(axis=0))
    error = ROUNDING + 16 * 2.0**-24 * (w * spans + 0.5 * w**2 * v.max(axis=0))
    checks = []
    for kind, got in found.items():
        for i in range(cases):
            bound = float(cap[i]) if kind == "cap" else np.inf
            want = largest_of_many(m[:, i], np.sqrt(v[:, i]), float(w[i]), bound)
            checks.append(close(f"{arms} arms, {kind}, extreme {i}", got[:, i], want, error[i]))
    return checks
