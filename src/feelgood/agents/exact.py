"""Thompson sampling from the exact law, where a problem is told well enough to compute it."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtr
from jaxtyping import Array, Float, Int

from feelgood.core.errors import FeelgoodError
from feelgood.core.knowledge import FiniteClass, GaussianArms, Knowledge
from feelgood.core.policy import AGENTS, Hints, Needs, Policy, Report
from feelgood.core.registry import Entry, Family
from feelgood.core.settings import public, setting, settings_of
from feelgood.core.spec import Number, Spec
from feelgood.numerics import lanes
from feelgood.numerics.keys import AnyKey
from feelgood.numerics.tilted_choice import NormalValues, tilted_choices, two_choices
from feelgood.targets.bonus import FeelGood, SmoothedFeelGood, weighted_bonus

#: Settings of the bonus that the exact agents have; their cap may be left out.
_BONUS_SETTINGS = ("lam", "lam_schedule", "prior_mass", "horizon")


class Evidence(eqx.Module):
    """All that the law depends on: plays and mean rewards of each copy's arms, and Σ w_s."""

    counts: Float[Array, "copies arms *lanes"]
    averages: Float[Array, "copies arms *lanes"]
    #: Of each copy, the sum of w_s over its rounds, λ_s = strength · w_s; see `targets.bonus`.
    weight: Float[Array, "copies *lanes"]
    rounds: Int[Array, ""]
    spec: Spec = eqx.field(static=True)


class ExactThompson(Policy):
    """Thompson sampling from the exact posterior, times the exact feel-good bonus.

    For problems that tell the agents a class of mean rewards and the noise (`Spec.known`). Where
    the arms show the same in every round, the law after some rounds is

        π(f) ∝ [prior(f) · Π_s N(r_s; f(a_s), noise²) · exp(Λ φ(max_a f(a)))]^(1/temperature),

    with Λ = Σ_s λ_s and φ(g) = g, min(b, g) or the smoothed cap. A finite class is enumerated. Of
    normal means two arms have a closed form, and more arms, or a cap, one-dimensional integrals.
    The probability of each arm is known exactly, and arms are drawn from that.

    With `clip` = ε, arms of probability below ε are never drawn: a sampler that misses rare events,
    after Phan, Abbasi-Yadkori and Domke, "Thompson sampling and approximate inference", 2019.

    Zhang, "Feel-good Thompson sampling for contextual bandits and reinforcement learning", 2022.
    """

    bonus: FeelGood | None = None
    temperature: Number = setting(
        1.0, "temperature: 1 draws from the law, less is greedier", above=0.0, high=1e9
    )
    clip: Number = setting(0.0, "arms of a smaller probability are never drawn", low=0.0, high=1.0)
    b: Number | None = setting(
        "uncapped", "cap b of the feel-good bonus", above=0.0, high=1e9, open_word="uncapped"
    )
    s: Number | None = setting(
        "hard", "sharpness s of a smoothed cap", above=0.0, high=1e6, open_word="hard"
    )

    def __check_init__(self) -> None:
        if self.s is not None and self.b is None:
            raise FeelgoodError(
                f"s = {public(self.s)} smooths the corner of a cap, and there is none: give b."
            )

    # ---- the policy ---------------------------------------------------------------------

    def init(self, key: AnyKey, spec: Spec) -> Evidence:
        del key
        known = self._known(spec)
        copies = known.copies if isinstance(known, GaussianArms) else 1
        nothing = jnp.zeros((copies, spec.arms, *spec.lanes))
        return Evidence(nothing, nothing, nothing[:, 0], jnp.zeros((), jnp.int32), spec)

    def needs(self, spec: Spec) -> Needs:
        del spec
        return Needs(choose=1)

    def choose(
        self, noise: Float[Array, "1 *lanes"], state: Evidence, context: Float[Array, "..."]
    ) -> Int[Array, "*lanes"]:
        return _rare_arms_first(noise[0], self.pmf(state, context))

    def update(
        self,
        state: Evidence,
        context: Float[Array, "..."],
        arm: Int[Array, "*lanes"],
        reward: Float[Array, "*lanes"],
    ) -> Evidence:
        here = self._copy(state, context)
        played = here[:, None] * lanes.one_hot(arm, state.spec.arms)
        counts = state.counts + played
        step = played * (reward - state.averages) / jnp.maximum(counts, 1.0)
        weight = state.weight
        if self.bonus is not None:
            weight = weight + self.bonus.weighed(here, state.rounds)
        return dataclasses.replace(
            state,
            counts=counts,
            averages=state.averages + step,
            weight=weight,
            rounds=state.rounds + 1,
        )

    def report(self, state: Evidence) -> Report:
        return Report(finite=jnp.isfinite(jnp.sum(state.averages, axis=(0, 1))))

    def hints(self, spec: Spec) -> Hints:
        self._known(spec)
        return Hints(layout="lanes", pmf=self.pmf)

    # ---- the law ------------------------------------------------------------------------

    def pmf(self, state: Evidence, context: Float[Array, "..."]) -> Float[Array, "arms *lanes"]:
        """The probability that each arm is the best one under the law; without those below ε."""
        law = self.law(state, context)
        kept = jnp.where(law >= jnp.minimum(self.clip, jnp.max(law, axis=0)), law, 0.0)
        return kept / jnp.sum(kept, axis=0)

    def law(self, state: Evidence, context: Float[Array, "..."]) -> Float[Array, "arms *lanes"]:
        """The same before anything is clipped."""
        here, known = self._copy(state, context), self._known(state.spec)
        counts, averages = (
            jnp.sum(here[:, None] * each, axis=0) for each in (state.counts, state.averages)
        )
        weight = None
        if self.bonus is not None:
            weight = self.bonus.strength * jnp.sum(here * state.weight, axis=0)
        if isinstance(known, FiniteClass):
            return self._enumerated(known, counts, averages, weight)
        values = _posterior(known, counts, averages)
        # Both the values' law and the bonus are taken to the power 1/temperature.
        values = NormalValues(
            values.mean,
            self.temperature * values.variance,
            None if values.covariance is None else self.temperature * values.covariance,
        )
        weight = None if weight is None else weight / self.temperature
        if known.arms == 2 and (self.b is None or weight is None):
            return two_choices(values, weight)
        return tilted_choices(values, weight, self.b)

    def _enumerated(
        self,
        known: FiniteClass,
        counts: Float[Array, "arms *lanes"],
        averages: Float[Array, "arms *lanes"],
        weight: Float[Array, "*lanes"] | None,
    ) -> Float[Array, "arms *lanes"]:
        """Σ of the members' weights, for each arm over those of which it is the best."""
        means, lead = np.asarray(known.means), (slice(None),) + (None,) * (counts.ndim - 1)
        score = jnp.asarray(np.log(known.masses), jnp.float32)[lead]
        for arm in range(known.arms):
            error = averages[arm] - jnp.asarray(means[:, arm], jnp.float32)[lead]
            score = score - counts[arm] * error * error / (2.0 * known.noise**2)
        if weight is not None:
            best = self._phi(jnp.asarray(means.max(axis=1), jnp.float32))
            score = score + weight * (jnp.moveaxis(best, -1, 0) if best.ndim > 1 else best[lead])
        score = score / self.temperature
        mass = jnp.exp(score - jnp.max(score, axis=0))
        # Of several best arms the first one is played.
        own = [np.flatnonzero(means.argmax(axis=1) == arm) for arm in range(known.arms)]
        sums = jnp.stack([jnp.sum(mass[members], axis=0) for members in own])
        return sums / jnp.sum(sums, axis=0)

    def _phi(self, best: Float[Array, " members"]) -> Float[Array, "... members"]:
        """φ of the best mean of each member."""
        if self.b is None:
            return best
        if self.s is None:
            return FeelGood(b=self.b).phi(best)
        return SmoothedFeelGood(b=self.b, s=self.s).phi(best)

    def _copy(self, state: Evidence, context: Float[Array, "..."]) -> Float[Array, "copies *lanes"]:
        """1 for the copy of the arms that a context shows."""
        copies, spec = len(state.counts), state.spec
        if copies == 1:
            return jnp.ones_like(state.weight)
        parts = jnp.abs(context).reshape(copies, -1, *spec.lanes)
        return lanes.one_hot(jnp.argmax(jnp.sum(parts, axis=1), axis=0), copies)

    def _known(self, spec: Spec) -> Knowledge:
        """What the problem tells, or one sentence where that is not enough."""
        known = spec.known
        if known is None:
            raise FeelgoodError(
                "agents are told no class of mean rewards there, and without one no law is exact; "
                "use a testbed such as trap-0.01 or linear-trap-80, or an agent such as lints."
            )
        if self.s is not None and not isinstance(known, FiniteClass):
            raise FeelgoodError(
                f"s = {public(self.s)} needs a finite class of mean rewards, such as that of "
                "trap-0.01; leave it out, and the cap is hard."
            )
        return known


def _posterior(
    known: GaussianArms,
    counts: Float[Array, "arms *lanes"],
    averages: Float[Array, "arms *lanes"],
) -> NormalValues:
    """The law of the arms' means given their plays; C(I + NC)⁻¹ written out for two arms."""
    lead = (slice(None),) + (None,) * (counts.ndim - 1)
    prior = jnp.asarray(known.mean, jnp.float32)[lead]
    variance = np.diag(known.covariance)
    told, seen = counts / known.noise**2, averages - prior
    if known.independent:
        own = jnp.asarray(variance, jnp.float32)[lead]
        own = own / (1.0 + own * told)
        return NormalValues(prior + own * told * seen, own)
    between = known.covariance[0][1]
    left = variance[0] * variance[1] - between**2
    size = 1.0 + variance[0] * told[0] + variance[1] * told[1] + left * told[0] * told[1]
    own = jnp.stack([variance[0] + left * told[1], variance[1] + left * told[0]]) / size
    covariance = between / size
    pulls = told * seen
    mean = prior + own * pulls + covariance * pulls[::-1]
    return NormalValues(mean, own, covariance)


def _rare_arms_first(
    normal: Float[Array, "*lanes"], law: Float[Array, "arms *lanes"]
) -> Int[Array, "*lanes"]:
    """An arm with the law's probabilities, from one standard normal: the inverse of its sums.

    The most probable arm comes last. The others then lie where numbers of float32 are dense, and
    probabilities far below 1e-7 keep their digits.
    """
    common = lanes.argmax(law)
    rare = law * (1.0 - lanes.one_hot(common, law.shape[0]))
    sums = jnp.cumsum(rare, axis=0)
    uniform = ndtr(normal)
    found = jnp.sum(sums <= uniform, axis=0)
    return jnp.where(uniform < sums[-1], found, common)


def _make(bonus: bool, values: Mapping[str, Any]) -> ExactThompson:
    own = {name: values[name] for name in settings_of(ExactThompson) if name in values}
    if not bonus:
        return ExactThompson(**own)
    usual = {name: rule.default for name, rule in settings_of(FeelGood).items()}
    told = {name: values[name] for name in _BONUS_SETTINGS}
    return ExactThompson(bonus=weighted_bonus(FeelGood, usual | told), **own)


def _parse(name: str) -> Entry[Policy] | None:
    if name not in ("exact-ts", "exact-fgts"):
        return None
    bonus = name == "exact-fgts"
    rules = settings_of(ExactThompson)
    if bonus:
        rules = {one: settings_of(FeelGood)[one] for one in _BONUS_SETTINGS} | rules
    else:
        del rules["b"], rules["s"]
    return Entry(
        name=name,
        doc=f"Thompson sampling from the exact {'feel-good law' if bonus else 'posterior'}, where "
        "the testbed tells enough.",
        settings=rules,
        make=lambda values: _make(bonus, values),
    )


AGENTS.add(
    Family(
        label="exact Thompson sampling",
        doc="exact-ts and exact-fgts",
        parse=_parse,
        names=("exact-ts", "exact-fgts"),
        defined=ExactThompson,
        family="Thompson sampling from the exact law",
    )
)
