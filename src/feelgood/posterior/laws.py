"""The laws that draws are compared with: the exact posterior, and an agent's own target.

With squared loss and no bonus a target is one normal law per block of parameters, known in closed
form. With the feel-good bonus it is that law times exp(β Σ λ_s φ(max_a f_θ(x_s, a))), which has no
closed form; it is then represented by draws (`feelgood_law`). All of it is float64 and uses none
of the library's samplers.
"""

import dataclasses
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy import special

from feelgood.core.errors import FeelgoodError
from feelgood.core.policy import Policy
from feelgood.core.spec import Spec
from feelgood.stats.independent_scores import independent_choices
from feelgood.targets.bonus import FeelGood

#: Draws that stand for a law without a closed form, and those that tune their proposal.
REFERENCE_DRAWS, TUNING_DRAWS = 16_000, 500
#: Rounds of tuning of the proposal's mean.
TUNINGS = 3
#: Below this share of effective draws the importance weights are not trusted.
LEAST_EFFICIENCY = 0.02
#: Half a unit in the last place of float32, in which agents compute.
FLOAT32_ROUNDING = float(np.finfo(np.float32).eps) / 2.0
#: Draws evaluated at a time, which bounds memory.
AT_A_TIME = 256


class Observed(NamedTuple):
    """A logged run: contexts, the arms that were played and what they paid."""

    contexts: Float[np.ndarray, "rounds *context"]
    arms: Int[np.ndarray, " rounds"]
    rewards: Float[np.ndarray, " rounds"]


class Moments(NamedTuple):
    """Σ x xᵀ and Σ r x of every block."""

    gram: Float[np.ndarray, "blocks dim dim"]
    moment: Float[np.ndarray, "blocks dim"]
    #: Rounds that each block was played in; None: not known.
    plays: Float[np.ndarray, " blocks"] | None = None

    @classmethod
    def of(cls, spec: Spec, log: Observed) -> "Moments":
        """The moments of a logged run."""
        rounds = len(log.arms)
        contexts = np.asarray(log.contexts, np.float64)
        if spec.shared:
            played = contexts[np.arange(rounds), :, log.arms]
            blocks = np.ones((rounds, 1))
        else:
            played = contexts
            blocks = (log.arms[:, None] == np.arange(spec.arms)).astype(np.float64)
        rewards = np.asarray(log.rewards, np.float64)
        return cls(
            gram=np.einsum("tb,ti,tj->bij", blocks, played, played, optimize=True),
            moment=np.einsum("tb,t,ti->bi", blocks, rewards, played, optimize=True),
            plays=blocks.sum(axis=0),
        )


@dataclasses.dataclass(frozen=True)
class Law:
    """Mean and covariance of every block; `draws` only where the law is not normal."""

    mean: Float[np.ndarray, "blocks dim"]
    covariance: Float[np.ndarray, "blocks dim dim"]
    draws: Float[np.ndarray, "draws blocks dim"] | None = None
    #: How many independent draws the law is known by; infinite for a closed form.
    size: float = np.inf
    #: How well single precision tells the mean, in units in which the covariance is I; None: not
    #: known.
    rounding: Float[np.ndarray, "blocks dim"] | None = None

    @property
    def factor(self) -> Float[np.ndarray, "blocks dim dim"]:
        """L with L Lᵀ the covariance."""
        return np.linalg.cholesky(self.covariance)

    def only(self, blocks: slice) -> "Law":
        """The law of some of the blocks."""
        draws = None if self.draws is None else self.draws[:, blocks]
        rounding = None if self.rounding is None else self.rounding[blocks]
        return Law(self.mean[blocks], self.covariance[blocks], draws, self.size, rounding)

    def whiten(self, draws: Float[np.ndarray, "*many blocks dim"]) -> np.ndarray:
        """Draws in units in which this law has mean 0 and covariance I."""
        inverse = np.linalg.inv(self.factor)
        return np.einsum("bij,...bj->...bi", inverse, draws - self.mean, optimize=True)

    def sample(self, generator: np.random.Generator, count: int) -> np.ndarray:
        """Independent draws [count, blocks, dim]."""
        if self.draws is not None:
            return self.draws[generator.integers(len(self.draws), size=count)]
        normal = generator.standard_normal((count, *self.mean.shape))
        return self.mean + np.einsum("bij,nbj->nbi", self.factor, normal, optimize=True)

    def choices(
        self, spec: Spec, contexts: Float[np.ndarray, "many *context"], seed: int = 0
    ) -> Float[np.ndarray, "many arms"]:
        """The probability that each arm looks best in each context."""
        if self.draws is None and not spec.shared:
            return _independent_arms(self, contexts)
        draws = self.draws
        if draws is None:
            draws = self.sample(np.random.default_rng([seed, 1]), REFERENCE_DRAWS)
        return choice_shares(spec, draws[None], contexts)[0]


def normal_law(moments: Moments, weight: float, prior: float) -> Law:
    """N(P⁻¹ w Σ r x, P⁻¹) with P = w Σ x xᵀ + prior · I."""
    dim = moments.moment.shape[-1]
    covariance = np.linalg.inv(weight * moments.gram + prior * np.eye(dim))
    covariance = 0.5 * (covariance + np.swapaxes(covariance, -1, -2))
    mean = np.einsum("bij,bj->bi", covariance, weight * moments.moment)
    rounding = None
    if moments.plays is not None:
        # A backward error. Sums of n numbers in float32 err by about √n roundings of the whole.
        # So the agent solves (P + E)(μ + δ) = b + e with |E| ≤ √n ε |P| and |e| ≤ √n ε |b|.
        precision = np.abs(weight * moments.gram + prior * np.eye(dim))
        sums = np.einsum("bij,bj->bi", precision, np.abs(mean)) + np.abs(weight * moments.moment)
        factor = np.abs(np.linalg.cholesky(covariance))
        relative = FLOAT32_ROUNDING * np.sqrt(moments.plays)[:, None]
        rounding = relative * np.einsum("bji,bj->bi", factor, sums)
    return Law(mean=mean, covariance=covariance, rounding=rounding)


def exact_posterior(moments: Moments, noise: float, precision: float) -> Law:
    """The posterior with rewards of deviation `noise` and prior N(0, I / precision)."""
    return normal_law(moments, 1.0 / noise**2, precision)


def require_normal(policy: Policy, spec: Spec) -> None:
    """Refuse an agent whose loss has no posterior in closed form."""
    target = policy.hints(spec).target
    if target is not None and target.loss != "squared":
        raise FeelgoodError(
            f"the {target.loss} loss has no exact posterior to compare with: "
            "set likelihood = squared."
        )


def own_target(policy: Policy, spec: Spec, log: Observed, seed: int = 0) -> Law | None:
    """The law that this agent should draw from with these data; None where it does not say."""
    require_normal(policy, spec)
    target = policy.hints(spec).target
    if target is None or target.weight is None or target.prior is None:
        return None
    plain = normal_law(Moments.of(spec, log), target.weight, target.prior)
    if target.bonus is None:
        return plain
    return feelgood_law(plain, spec, log.contexts, target.bonus, target.beta, seed)


# ---- which arm looks best -------------------------------------------------------------------


def arm_scores(
    spec: Spec,
    draws: Float[np.ndarray, "draws blocks dim"],
    contexts: Float[np.ndarray, "many *context"],
) -> Float[np.ndarray, "draws many arms"]:
    """f_θ of every arm in every context, for every draw."""
    if spec.shared:
        return np.einsum("ni,mia->nma", draws[:, 0], contexts, optimize=True)
    return np.swapaxes(draws @ contexts.T, 1, 2)


def choice_shares(
    spec: Spec,
    draws: Float[np.ndarray, "chains draws blocks dim"],
    contexts: Float[np.ndarray, "many *context"],
) -> Float[np.ndarray, "chains many arms"]:
    """The share of each chain's draws for which each arm looks best in each context."""
    out = np.zeros((len(draws), len(contexts), spec.arms))
    for chain, own in enumerate(draws):
        for start in range(0, len(own), AT_A_TIME):
            best = arm_scores(spec, own[start : start + AT_A_TIME], contexts).argmax(axis=-1)
            out[chain] += (best[..., None] == np.arange(spec.arms)).sum(axis=0)
    return out / draws.shape[1]


def _independent_arms(
    law: Law, contexts: Float[np.ndarray, "many dim"]
) -> Float[np.ndarray, "many arms"]:
    """The probability that each of several independent normal scores is the largest."""
    contexts = np.asarray(contexts, np.float64)
    mean = contexts @ law.mean.T
    spread = np.sqrt(np.einsum("mi,bij,mj->mb", contexts, law.covariance, contexts, optimize=True))
    return independent_choices(mean, spread)


# ---- the feel-good target -------------------------------------------------------------------


def _bonus(bonus: FeelGood, best: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """φ and φ' of the best scores, written out in float64."""
    b, s = float(bonus.b), float(bonus.sharpness)
    if np.isinf(s):
        return np.minimum(b, best), (best < b).astype(np.float64)
    return b - np.logaddexp(0.0, s * (b - best)) / s, special.expit(s * (b - best))


def _round_weights(bonus: FeelGood, rounds: int) -> Float[np.ndarray, " rounds"]:
    """λ_s / strength of every round, written out in float64."""
    return 1.0 / np.sqrt(np.arange(1.0, rounds + 1)) if bonus.weighs_rounds else np.ones(rounds)


def _log_bonus(
    spec: Spec, contexts: np.ndarray, bonus: FeelGood, weight: float, draws: np.ndarray
) -> Float[np.ndarray, " draws"]:
    """β Σ λ_s φ of every draw."""
    rounds = _round_weights(bonus, len(contexts))
    parts = [
        (_bonus(bonus, arm_scores(spec, part, contexts).max(axis=-1))[0] * rounds).sum(axis=1)
        for part in np.split(draws, range(AT_A_TIME, len(draws), AT_A_TIME))
    ]
    return weight * np.concatenate(parts)


def _bonus_gradient(
    spec: Spec, contexts: np.ndarray, bonus: FeelGood, weight: float, draws: np.ndarray
) -> Float[np.ndarray, "blocks dim"]:
    """The gradient of β Σ λ_s φ, on average over the draws."""
    hot = np.zeros((len(contexts), spec.arms))
    for part in np.split(draws, range(AT_A_TIME, len(draws), AT_A_TIME)):
        scores = arm_scores(spec, part, contexts)
        slope = _bonus(bonus, scores.max(axis=-1))[1]
        winner = scores.argmax(axis=-1)[..., None] == np.arange(spec.arms)
        hot += (slope[..., None] * winner).sum(axis=0)
    hot *= _round_weights(bonus, len(contexts))[:, None]
    total = np.einsum("ma,mia->i", hot, contexts)[None] if spec.shared else hot.T @ contexts
    return weight * total / len(draws)


def feelgood_law(
    plain: Law, spec: Spec, contexts: np.ndarray, bonus: FeelGood, beta: float, seed: int = 0
) -> Law:
    """plain × exp(β Σ_s λ_s φ(max_a f_θ(x_s, a))), by importance sampling.

    The bonus is straight where no context changes its best arm, so the target is near the normal
    law with the mean moved by covariance × gradient. That is the proposal; its mean is tuned on a
    few draws, and the weights correct for what is left. Their effective number is
    what the law is known by.
    """
    generator = np.random.default_rng([seed, 2])
    contexts = np.asarray(contexts, np.float64)
    weight = beta * float(bonus.strength)
    precision = np.linalg.inv(plain.covariance)
    proposal = plain
    for _ in range(TUNINGS):
        draws = proposal.sample(generator, TUNING_DRAWS)
        gradient = _bonus_gradient(spec, contexts, bonus, weight, draws)
        shift = np.einsum("bij,bj->bi", plain.covariance, gradient)
        proposal = Law(mean=plain.mean + shift, covariance=plain.covariance)
    draws = proposal.sample(generator, REFERENCE_DRAWS)
    values = _log_bonus(spec, contexts, bonus, weight, draws)
    # The ratio of the two normal laws is exp(linear): they share their covariance.
    tilt = np.einsum("bij,bj->bi", precision, proposal.mean - plain.mean)
    log_weight = values - np.einsum("nbi,bi->n", draws, tilt)
    weights = np.exp(log_weight - log_weight.max())
    weights /= weights.sum()
    size = 1.0 / np.sum(weights**2)
    if size < LEAST_EFFICIENCY * REFERENCE_DRAWS:
        raise FeelgoodError(
            f"the feel-good target with β·λ = {weight:g} is too far from normal for its exact "
            f"reference ({size:.0f} effective draws of {REFERENCE_DRAWS:,}): use a smaller lam."
        )
    mean = np.einsum("n,nbi->bi", weights, draws)
    centred = draws - mean
    covariance = np.einsum("n,nbi,nbj->bij", weights, centred, centred, optimize=True)
    # Systematic resampling: as many equal draws as the weights say, to within one.
    places = (np.arange(REFERENCE_DRAWS) + generator.uniform()) / REFERENCE_DRAWS
    index = np.minimum(np.searchsorted(np.cumsum(weights), places), REFERENCE_DRAWS - 1)
    return Law(mean, covariance, draws[index], float(size), plain.rounding)
