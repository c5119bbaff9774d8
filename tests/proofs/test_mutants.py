"""Break the mathematics on purpose: the proofs must notice.

Each mutant changes one line of the library's own source, and a check of the proofs must fail on it.
The unbroken library passes the same check with the same random numbers.
"""

import dataclasses
import functools
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from proofs.caches import cache_checks
from proofs.energies import energy_checks, svrg_sum_checks
from proofs.exact_laws import (
    clip_checks,
    copy_checks,
    finite_checks,
    many_checks,
    pair_checks,
)
from proofs.jump_laws import jump_checks
from proofs.laws import (
    CAPS,
    bonus_agent,
    gaussian_checks,
    proof_agent,
    quadrature_checks,
    stationarity_checks,
    two_dimensional,
)
from proofs.learned import chi_square_checks, scale_checks, student_checks
from proofs.levels import Check, rejects, require
from proofs.logistic_laws import (
    gibbs_checks,
    normal_checks,
    variate_checks,
    variational_checks,
)
from proofs.network_models import (
    bootstrap_checks,
    ensemble_checks,
    noise_checks,
    playing_checks,
    regression_checks,
    width_checks,
)
from proofs.propensities import propensity_checks
from proofs.rival_laws import member_checks, slope_checks, wide_checks
from proofs.targets import SETTINGS, agent, problem

from feelgood import Spec
from feelgood.agents import exact, vits
from feelgood.agents.ensemble_plus_plus import EnsemblePlusPlus
from feelgood.agents.exact import ExactThompson
from feelgood.agents.laplace_ts import LaplaceTS
from feelgood.agents.lints import LinTS
from feelgood.agents.neural_bootstrap import NeuralBootstrap
from feelgood.agents.neural_ensemble import NeuralEnsemble
from feelgood.agents.neural_linear import NeuralLinear
from feelgood.agents.neural_members import MembersPolicy
from feelgood.agents.neural_model import NeuralModelPolicy
from feelgood.agents.neural_ts import NeuralTS
from feelgood.agents.pg_ts import PolyaGammaTS
from feelgood.agents.ridge import ModelRidgePolicy
from feelgood.numerics import chi_square as chi_square_module
from feelgood.numerics import polya_gamma
from feelgood.samplers import lmc
from feelgood.samplers.hmc import HMC
from feelgood.samplers.jump import JumpMALA
from feelgood.samplers.lmc import LMC
from feelgood.samplers.mala import MALA
from feelgood.samplers.svrg import SVRGLMC
from feelgood.samplers.ulmc import ULMC
from feelgood.targets import arm_jumps
from feelgood.targets.bonus import Bonus, FeelGood, MeanBonus, SmoothedFeelGood
from feelgood.targets.energy import LinearModelTarget
from feelgood.targets.evaluators import FullPass
from feelgood.targets.history import Chunk, contract, played_scores
from feelgood.targets.network_noise import NetworkNoise
from feelgood.targets.scales import ScaleModel

DATA = problem(Spec(arms=2, dim=3), 40)


def gaussian(name: str) -> list[Check]:
    return gaussian_checks(proof_agent(name, steps=30), DATA, f"mutant, {name}")


def energy(name: str) -> list[Check]:
    data = problem(Spec(arms=3, dim=2), 40)
    caps = CAPS["sfg" in name] if "fg" in name else [{}]
    return energy_checks(agent(name, **(SETTINGS | {"lam": 0.7})), data, f"mutant, {name}", caps)


def target(name: str) -> list[Check]:
    data = two_dimensional(shared=False, bernoulli=False)
    return quadrature_checks(bonus_agent(name, data), data, f"mutant, {name}")


def far_jumps(name: str) -> list[Check]:
    return jump_checks(name, "far", starts=[0])


def near_jumps(name: str) -> list[Check]:
    return jump_checks(name, "near")


def stationary(name: str) -> list[Check]:
    data = two_dimensional(shared=False, bernoulli=False)
    return stationarity_checks(bonus_agent(name, data), data, f"mutant, {name}")


def cache(name: str) -> list[Check]:
    data = two_dimensional(shared=False, bernoulli=False)
    return cache_checks(bonus_agent(name, data, b=0.5, steps=5), data, f"mutant, {name}")


def linked(name: str) -> list[Check]:
    """The energy where the bonus sees the scores through a link."""
    data = problem(Spec(arms=3, dim=2, rewards="bernoulli"), 40)
    policy = agent(name, **(SETTINGS | {"lam": 0.7}))
    return energy_checks(policy, data, f"mutant, linked {name}", CAPS["sfg" in name])


def linked_target(name: str) -> list[Check]:
    data = two_dimensional(shared=False, bernoulli=True)
    return quadrature_checks(bonus_agent(name, data), data, f"mutant, linked {name}")


def linked_stationary(name: str) -> list[Check]:
    data = two_dimensional(shared=False, bernoulli=True)
    return stationarity_checks(bonus_agent(name, data), data, f"mutant, linked {name}")


def scheduled(name: str) -> list[Check]:
    """The energy where every round has a weight of its own."""
    data = problem(Spec(arms=3, dim=2), 40)
    policy = agent(name, **(SETTINGS | {"lam": 0.7, "lam_schedule": "sqrt"}))
    return energy_checks(policy, data, f"mutant, scheduled {name}", CAPS["sfg" in name])


def batches(name: str) -> list[Check]:
    return svrg_sum_checks(name, shared=False, bernoulli=True)


def widened(name: str) -> list[Check]:
    return wide_checks(name, "disjoint", variance=2.0)


def slopes(name: str) -> list[Check]:
    assert name == "evill"
    return slope_checks("shared, Bernoulli", rounds=40, temperature=1.0)


def members(name: str) -> list[Check]:
    assert name == "ensemble++"
    return member_checks("disjoint", members=3)


def variates(name: str) -> list[Check]:
    return variate_checks(2.0, f"mutant, {name}")


def gibbs(name: str) -> list[Check]:
    return gibbs_checks(f"mutant, {name}", shared=True)


def laplace(name: str) -> list[Check]:
    return normal_checks(two_dimensional(shared=False, bernoulli=True), f"mutant, {name}")


def variational(name: str) -> list[Check]:
    return variational_checks(shared=False, told={}, label=f"mutant, {name}")


def propensities(name: str) -> list[Check]:
    """Of few rounds, so that degrees of freedom matter."""
    return propensity_checks(name, "disjoint", 150_000, rounds=3, temperature=0.3)


@functools.cache
def require_unbroken(check: Callable[[str], list[Check]], name: str) -> None:
    """The library as it is passes the check."""
    require(check(name))


def played_arm_bonus(spec: Spec, bonus: FeelGood, theta: Any, chunk: Chunk) -> Any:
    """What the bonus would be over the played arm only."""
    assert chunk.contexts is not None
    best, hot = played_scores(spec, theta, chunk.contexts, chunk.arms)
    weights = hot * (bonus.slope(best) * chunk.valid)
    value = (bonus.phi(best) * chunk.valid).sum(axis=-1)
    return value, contract(weights, chunk.contexts)


def pulled_by_plays(values: Any, counts: Any, weight: Any) -> Any:
    """What the law of normal values would be with the bonus on the played arm: no maximum."""
    shares = counts / counts.sum(axis=0).clip(1.0)
    own = weight * shares * values.variance
    if values.covariance is not None:
        own = own + weight * shares[::-1] * values.covariance
    return values._replace(mean=values.mean + own)


@dataclasses.dataclass(frozen=True)
class Mutant:
    """One line of a function, what it becomes, and the checks that must notice."""

    what: str
    owner: Any
    function: str
    line: str
    broken: str
    caught_by: tuple[tuple[Callable[[str], list[Check]], str], ...]
    names: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def apply(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Compile the function anew with the line broken, and put it in its place."""
        original = inspect.unwrap(getattr(self.owner, self.function))
        source = textwrap.dedent(inspect.getsource(original))
        assert source.count(self.line) == 1, f"'{self.line}' is gone: change this mutant with it"
        module = sys.modules[original.__module__]
        namespace = {**vars(module), **self.names}
        exec(source.replace(self.line, self.broken), namespace)
        monkeypatch.setattr(self.owner, self.function, namespace[self.function])


MUTANTS = (
    Mutant(
        "proposal densities left out of the MALA ratio",
        MALA,
        "step",
        "0.5 * (square(normal) - square(backward))",
        "0.0 * square(normal)",
        ((gaussian, "malats"), (gaussian, "pmalats"), (target, "fgmalats")),
    ),
    Mutant(
        "gradient sign reversed in the backward density",
        MALA,
        "step",
        "tuning.whiten(chain.gradient + gradient)",
        "tuning.whiten(chain.gradient - gradient)",
        ((gaussian, "malats"), (gaussian, "pmalats")),
    ),
    Mutant(
        "β dropped from the MALA ratio",
        MALA,
        "step",
        "beta * (chain.value - value) + densities",
        "(chain.value - value) + densities",
        ((gaussian, "malats"),),
    ),
    Mutant(
        "β dropped from the HMC ratio",
        HMC,
        "step",
        "beta * (chain.value - value) + kinetic",
        "(chain.value - value) + kinetic",
        ((gaussian, "hmcts"),),
    ),
    Mutant(
        "kinetic energy left out of the HMC ratio",
        HMC,
        "step",
        "beta * (chain.value - value) + kinetic",
        "beta * (chain.value - value)",
        ((gaussian, "hmcts"),),
    ),
    Mutant(
        "bonus evaluated at the old θ",
        LinearModelTarget,
        "with_bonus",
        "bonus.evaluate(memo, self.data.rows, theta, uniform)",
        "bonus.evaluate(memo, self.data.rows, self.origin, uniform)",
        ((energy, "fglmcts"), (stationary, "fglmcts"), (target, "fgmalats")),
    ),
    Mutant(
        "sign of the bonus reversed",
        LinearModelTarget,
        "with_bonus",
        "Evaluation(value - lam * extra, gradient - lam * slope, memo)",
        "Evaluation(value + lam * extra, gradient + lam * slope, memo)",
        ((energy, "fglmcts"), (target, "fgmalats"), (stationary, "fglmcts")),
    ),
    Mutant(
        "bonus over the played arm only",
        FullPass,
        "evaluate",
        "rows.total(of_chunk, theta)",
        "rows.total(lambda chunk, at: played_arm_bonus(self.spec, self.bonus, at, chunk), theta)",
        ((energy, "fglmcts"), (target, "fgmalats"), (stationary, "fglmcts")),
        {"played_arm_bonus": played_arm_bonus},
    ),
    Mutant(
        "cap left out of the gradient",
        FeelGood,
        "slope",
        "(best < self.b[..., None])",
        "(best < jnp.inf)",
        ((energy, "fglmcts"), (stationary, "fglmcts")),
    ),
    Mutant(
        "smoothed slope without its sharpness",
        SmoothedFeelGood,
        "slope",
        "self.s[..., None] * (self.b[..., None] - best)",
        "self.b[..., None] - best",
        ((energy, "sfglmcts"),),
    ),
    Mutant(
        "the bonus on the score where rewards have a link",
        sys.modules["feelgood.agents.thompson"],
        "on_scores",
        "MeanBonus(inner=bonus) if linked else bonus",
        "bonus",
        ((linked, "fglmcts"), (linked, "sfglmcts"), (linked_target, "fgmalats")),
    ),
    Mutant(
        "another link, the normal distribution function",
        MeanBonus,
        "phi",
        "jax.nn.sigmoid(best)",
        "jax.scipy.stats.norm.cdf(best)",
        ((linked, "fglmcts"), (linked_target, "fgmalats")),
    ),
    Mutant(
        "link left out of the bonus gradient",
        MeanBonus,
        "slope",
        " * mean * jax.nn.sigmoid(-best)",
        "",
        ((linked, "fglmcts"), (linked_stationary, "fglmcts")),
    ),
    Mutant(
        "cap before the link, in the value",
        MeanBonus,
        "phi",
        "self.inner.phi(jax.nn.sigmoid(best))",
        "jax.nn.sigmoid(self.inner.phi(best))",
        ((linked, "fglmcts"), (linked, "sfglmcts"), (linked_target, "fgmalats")),
    ),
    Mutant(
        "cap before the link, in the gradient",
        MeanBonus,
        "slope",
        "self.inner.slope(mean)",
        "self.inner.slope(best)",
        ((linked, "fglmcts"), (linked, "sfglmcts"), (linked_stationary, "fglmcts")),
    ),
    Mutant(
        "today's λ in all rounds",
        Bonus,
        "weighed",
        "numbers + 1.0",
        "numbers.max() + 1.0",
        ((scheduled, "fglmcts"), (scheduled, "sfglmcts")),
    ),
    Mutant(
        "the rounds of a schedule counted from 2",
        Bonus,
        "weighed",
        "numbers + 1.0",
        "numbers + 2.0",
        ((scheduled, "fglmcts"),),
    ),
    Mutant(
        "SVRG batch not scaled by n/B",
        sys.modules["feelgood.targets.energy"],
        "random_batch",
        "filled / jnp.maximum(batch_length(number, filled, size), 1)",
        "jnp.ones_like(uniform)",
        ((batches, "svrgfglmcts"), (gaussian, "svrglmcts")),
    ),
    Mutant(
        "underdamped noise without γ",
        ULMC,
        "step",
        "jnp.sqrt(2.0 * friction * h / tuning.beta)",
        "jnp.sqrt(2.0 * h / tuning.beta)",
        ((gaussian, "ulmcts"),),
    ),
    Mutant(
        "V⁻¹ drift with V⁻¹ noise",
        lmc,
        "langevin",
        "jnp.sqrt(2.0 * h / tuning.beta) * normal",
        "jnp.sqrt(2.0 * h / tuning.beta) * tuning.whiten(normal)",
        ((gaussian, "plmcts"), (stationary, "pfglmcts")),
    ),
    Mutant(
        "Langevin noise √(h/β)",
        lmc,
        "langevin",
        "jnp.sqrt(2.0 * h / tuning.beta)",
        "jnp.sqrt(h / tuning.beta)",
        ((gaussian, "lmcts"),),
    ),
    Mutant(
        "prior left out",
        LinearModelTarget,
        "_quadratic_gradient",
        "2.0 * self.energy.rho * theta",
        "0.0 * theta",
        ((energy, "lmcts"), (gaussian, "lmcts")),
    ),
    Mutant(
        "jumps accepted without their densities",
        JumpMALA,
        "step",
        "tuning.beta * (chain.value - value) + jump.log_densities",
        "tuning.beta * (chain.value - value)",
        ((target, "jfgmalats"), (far_jumps, "jfgmalats")),
    ),
    Mutant(
        "β dropped from the ratio of a jump",
        JumpMALA,
        "step",
        "tuning.beta * (chain.value - value) + jump.log_densities",
        "(chain.value - value) + jump.log_densities",
        ((target, "jfgmalats"),),
    ),
    Mutant(
        "sides of a jump's mixture weighted without their variance",
        arm_jumps,
        "propose",
        "pair.pull * pair.mean + 0.5 * jnp.sum(tilted * tilted, axis=1)",
        "pair.pull * pair.mean",
        ((far_jumps, "jfgmalats"),),
    ),
    Mutant(
        "jumps whose way back would not be found",
        arm_jumps,
        "propose",
        "(winner == best) | (winner == other)",
        "jnp.ones_like(first)",
        ((near_jumps, "jfgmalats"),),
    ),
    Mutant(
        "stale cached gradient after an update",
        MALA,
        "refresh",
        "chain._replace(value=value, gradient=gradient, memo=memo)",
        "chain",
        ((cache, "malats"), (cache, "fgmalats")),
    ),
    Mutant(
        "stale snapshot after an update",
        SVRGLMC,
        "refresh",
        "_renew(chain, target)",
        "chain",
        ((cache, "svrglmcts"),),
    ),
    Mutant(
        "random slope left out",
        sys.modules["feelgood.targets.logistic_fit"],
        "descend",
        "gradient = gradient + pull",
        "pass",
        ((slopes, "evill"),),
    ),
    Mutant(
        "prior of an ensemble without a spread",
        EnsemblePlusPlus,
        "_columns",
        "jnp.sqrt(ratio) * state.start + state.seen",
        "state.seen",
        ((members, "ensemble++"),),
    ),
    Mutant(
        "rewards of an ensemble without noise",
        EnsemblePlusPlus,
        "draw",
        "noise[self.members :] / jnp.sqrt(1.0 * self.members)",
        "0.0 * noise[self.members :]",
        ((members, "ensemble++"),),
    ),
    Mutant(
        "Pólya–Gamma candidates taken without their tilt",
        polya_gamma,
        "_candidate",
        "jnp.exp(-0.5 * z * z * x)",
        "1.0",
        ((variates, "pg-ts"), (gibbs, "pg-ts")),
    ),
    Mutant(
        "Gibbs steps that take r for r − ½",
        PolyaGammaTS,
        "refit",
        "(reward - 0.5) * x",
        "reward * x",
        ((gibbs, "pg-ts"),),
    ),
    Mutant(
        "Laplace draws without the temperature",
        LaplaceTS,
        "draw",
        "variance * self.widening(state.spec)",
        "variance",
        ((laplace, "laplace-ts"), (widened, "lints-inflated")),
    ),
    Mutant(
        "a flow of covariances without its entropy's factor",
        vits,
        "flow",
        "h * (curvature - precision)",
        "h * (curvature - 0.9 * precision)",
        ((variational, "vits"),),
    ),
    Mutant(
        "noise of every draw its mean and not a draw",
        LinTS,
        "draw",
        "chi_square(noise[state.spec.parameters :], freedom)",
        "freedom",
        ((student_checks, "lints"),),
    ),
    Mutant(
        "temperature times the deviation and not the variance",
        LinTS,
        "draw",
        "precision / self.temperature",
        "precision / self.temperature**2",
        ((student_checks, "lints"),),
    ),
    Mutant(
        "noise from the rewards and not from what is left of them",
        ModelRidgePolicy,
        "noise_law",
        "squares - jnp.sum(white**2, axis=(0, 1))",
        "squares",
        ((student_checks, "lints"),),
    ),
    Mutant(
        "a degree of freedom too few",
        ModelRidgePolicy,
        "noise_law",
        "state.learned.scales.rewards",
        "state.learned.scales.rewards - 1.0",
        ((student_checks, "lints"),),
    ),
    Mutant(
        "probabilities without the temperature",
        LinTS,
        "scores",
        "self.temperature / precision",
        "1.0 / precision",
        ((propensities, "lints"),),
    ),
    Mutant(
        "probabilities with a degree of freedom too many",
        LinTS,
        "scores",
        "factor, variance, freedom)",
        "factor, variance, freedom + 1.0)",
        ((propensities, "lints"),),
    ),
    Mutant(
        "probabilities of an estimate without their spread's factor",
        LaplaceTS,
        "scores",
        "variance * self.widening(state.spec)",
        "variance",
        ((propensities, "laplace-ts"),),
    ),
    Mutant(
        "the spread of the posterior left out of the prior's scale",
        ScaleModel,
        "estimate",
        "length2 + spread + signal",
        "length2 + signal",
        ((scale_checks, "lints"), (scale_checks, "lmcts")),
    ),
    Mutant(
        "the effective parameters left out of the noise",
        ScaleModel,
        "estimate",
        "residual + noise * (parameters - ratio * trace)",
        "residual",
        ((scale_checks, "lints"), (scale_checks, "lmcts")),
    ),
    Mutant(
        "χ² without the boost for few degrees of freedom",
        chi_square_module,
        "chi_square",
        "jnp.where(boost, jnp.exp(2.0 * log_u[0] / freedom), 1.0)",
        "1.0",
        ((chi_square_checks, "1"),),
    ),
    Mutant(
        "χ² candidates that are never refused",
        chi_square_module,
        "chi_square",
        "jnp.where(taken[i], v[i], chosen)",
        "v[i]",
        ((chi_square_checks, "1"),),
    ),
    Mutant(
        "the noise of a network without its prior",
        NetworkNoise,
        "learn",
        "PRIOR_REWARDS * PRIOR_SHARE * squares / count",
        "0.0 * squares",
        ((noise_checks, "6"), (noise_checks, "0")),
    ),
    Mutant(
        "the sums of a batch not scaled to the whole history",
        NeuralModelPolicy,
        "renewed",
        "sums = stats.times(weight), weight * squares",
        "sums = stats, squares",
        ((noise_checks, "6"),),
    ),
    Mutant(
        "noise of neural-linear from the rewards and not from what is left of them",
        NeuralLinear,
        "noise_law",
        "squares - mean @ moment",
        "squares",
        ((regression_checks, "2"),),
    ),
    Mutant(
        "a degree of freedom of neural-linear too few",
        NeuralLinear,
        "noise_law",
        "1.0 * count",
        "count - 1.0",
        ((regression_checks, "2"),),
    ),
    Mutant(
        "neural-linear without its temperature",
        NeuralLinear,
        "weights",
        "variance * self.temperature",
        "variance",
        ((regression_checks, "2"),),
    ),
    Mutant(
        "Bernoulli rewards that all tell neural-ts as much",
        NeuralTS,
        "observed",
        "mean * (1.0 - mean) * square",
        "square",
        ((width_checks, "bernoulli"),),
    ),
    Mutant(
        "neural-ts without its temperature",
        NeuralTS,
        "variance",
        "[1] * self.temperature",
        "[1]",
        ((width_checks, "squared"), (width_checks, "bernoulli")),
    ),
    Mutant(
        "half of the weight decay of neural-ts",
        NeuralTS,
        "weight_decay",
        "1.0 if self._bernoulli(state.spec) else 2.0",
        "1.0",
        ((width_checks, "squared"),),
    ),
    Mutant(
        "an ensemble that learns as if it had no priors",
        NeuralEnsemble,
        "made_to_see",
        "self.prior_scale * self.of_each_member",
        "0.0 * self.of_each_member",
        ((ensemble_checks, "2"),),
    ),
    Mutant(
        "an ensemble with one prior for all",
        NeuralEnsemble,
        "own",
        "fold_in(key, k)",
        "fold_in(key, 0)",
        ((ensemble_checks, "2"),),
    ),
    Mutant(
        "a bootstrap of all or nothing, once",
        NeuralBootstrap,
        "resampled",
        "2.0 * (uniform < 0.5)",
        "1.0 * (uniform < 0.5)",
        ((bootstrap_checks, "double-or-nothing"),),
    ),
    Mutant(
        "a bootstrap that resamples no rounds but members",
        NeuralBootstrap,
        "resampled",
        "lanes.uniform(fold_in(key, i), self.members)",
        "lanes.uniform(fold_in(key, 0), self.members)",
        ((bootstrap_checks, "double-or-nothing"), (bootstrap_checks, "poisson")),
    ),
    Mutant(
        "resampled rewards that count once in the loss",
        MembersPolicy,
        "_gradient_of_one",
        "weight * slope * batch.counts",
        "slope * batch.counts",
        ((bootstrap_checks, "double-or-nothing"), (bootstrap_checks, "poisson")),
    ),
    Mutant(
        "probabilities of members that have not learned yet",
        MembersPolicy,
        "pmf",
        "self.draw(None, state)",
        "state",
        ((playing_checks, "neural-ensemble"), (playing_checks, "neural-bootstrap")),
    ),
    Mutant(
        "gradients of members as long as they are",
        MembersPolicy,
        "_descend",
        "self.clip / jnp.maximum(length, self.clip)",
        "1.0",
        ((playing_checks, "neural-ensemble"), (playing_checks, "neural-bootstrap")),
    ),
    Mutant(
        "sign of the exact bonus reversed",
        ExactThompson,
        "law",
        "self.bonus.strength * jnp.sum",
        "-self.bonus.strength * jnp.sum",
        (
            (finite_checks, "constant"),
            (pair_checks, "constant"),
            (many_checks, "falling"),
            (copy_checks, "falling"),
        ),
    ),
    Mutant(
        "Λ²/2 left out of the closed form",
        exact,
        "two_choices",
        "+ 0.5 * weight * weight * (own - other)",
        "",
        ((pair_checks, "constant"), (copy_checks, "falling")),
    ),
    Mutant(
        "Λs² left out of the closed form's Φ",
        exact,
        "two_choices",
        "gap + weight * (own - between)",
        "gap",
        ((pair_checks, "constant"),),
    ),
    Mutant(
        "exact bonus on the played arm only, of a finite class",
        ExactThompson,
        "_enumerated",
        "self._phi(jnp.asarray(means.max(axis=1), jnp.float32))",
        "self._phi(jnp.asarray(means, jnp.float32) @ (counts / jnp.maximum(counts.sum(), 1.0)))",
        ((finite_checks, "constant"), (finite_checks, "falling")),
    ),
    Mutant(
        "exact bonus on the played arm only, of normal means",
        ExactThompson,
        "law",
        "weight = None if weight is None else weight / self.temperature",
        "values, weight = pulled_by_plays(values, counts, weight / self.temperature), None",
        ((pair_checks, "constant"), (many_checks, "falling")),
        {"pulled_by_plays": pulled_by_plays},
    ),
    Mutant(
        "cap of the exact bonus forgotten, of a finite class",
        ExactThompson,
        "_phi",
        "return FeelGood(b=self.b).phi(best)",
        "return best",
        ((finite_checks, "capped"),),
    ),
    Mutant(
        "cap of the exact bonus forgotten, of normal means",
        exact,
        "tilted_choices",
        "jnp.minimum(cap, at)",
        "at",
        ((many_checks, "capped"), (pair_checks, "capped")),
    ),
    Mutant(
        "exact bonus without the temperature",
        ExactThompson,
        "law",
        "else weight / self.temperature",
        "else weight",
        ((pair_checks, "tempered"), (many_checks, "tempered")),
    ),
    Mutant(
        "rounds of an exact schedule counted from 2",
        ExactThompson,
        "update",
        "self.bonus.weighed(here, state.rounds)",
        "self.bonus.weighed(here, state.rounds + 1)",
        ((finite_checks, "falling"), (copy_checks, "falling")),
    ),
    Mutant(
        "bonus of all copies in each of them",
        ExactThompson,
        "law",
        "jnp.sum(here * state.weight, axis=0)",
        "jnp.sum(state.weight, axis=0)",
        ((copy_checks, "falling"),),
    ),
    Mutant(
        "rare arms drawn all the same",
        ExactThompson,
        "pmf",
        "jnp.minimum(self.clip, jnp.max(law, axis=0))",
        "0.0",
        ((clip_checks, "constant"),),
    ),
)


def cases() -> Iterator[Any]:
    """Every mutant with every check that notices it. Quick: of every check the first."""
    seen: set[str] = set()
    for mutant in MUTANTS:
        for check, name in mutant.caught_by:
            told = f"{mutant.what}: {check.__name__} {name}"
            marks = pytest.mark.slow if check.__name__ in seen else ()
            seen.add(check.__name__)
            yield pytest.param(mutant, check, name, id=told, marks=marks)


@pytest.mark.parametrize(("mutant", "check", "name"), list(cases()))
def test_the_proofs_notice(
    mutant: Mutant,
    check: Callable[[str], list[Check]],
    name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    require_unbroken(check, name)
    mutant.apply(monkeypatch)
    assert rejects(check(name)), f"{mutant.what}: {check.__name__} of {name} did not notice"


def test_a_mutant_without_a_change_is_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """The way mutants are made breaks nothing by itself."""
    line = "return LMCChain(theta=theta, memo=memo), Info()"
    Mutant("nothing", LMC, "step", line, line, ()).apply(monkeypatch)
    require(gaussian("lmcts"))
