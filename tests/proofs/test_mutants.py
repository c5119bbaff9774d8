"""Break the mathematics on purpose: the proofs must notice.

Each mutant changes one line of the library's own source, and a check of the proofs must fail on it.
The unbroken library passes the same check with the same random numbers.
"""

import dataclasses
import functools
import inspect
import sys
import textwrap
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from proofs.caches import cache_checks
from proofs.energies import energy_checks, svrg_sum_checks
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
from proofs.targets import SETTINGS, agent, problem

from feelgood import Spec
from feelgood.agents.lints import LinTS
from feelgood.agents.ridge import ModelRidgePolicy
from feelgood.numerics import chi_square as chi_square_module
from feelgood.samplers import lmc
from feelgood.samplers.hmc import HMC
from feelgood.samplers.lmc import LMC
from feelgood.samplers.mala import MALA
from feelgood.samplers.svrg import SVRGLMC
from feelgood.samplers.ulmc import ULMC
from feelgood.targets.bonus import FeelGood, SmoothedFeelGood
from feelgood.targets.energy import LinearModelTarget
from feelgood.targets.evaluators import FullPass
from feelgood.targets.history import Chunk, contract, played_scores
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


def stationary(name: str) -> list[Check]:
    data = two_dimensional(shared=False, bernoulli=False)
    return stationarity_checks(bonus_agent(name, data), data, f"mutant, {name}")


def cache(name: str) -> list[Check]:
    data = two_dimensional(shared=False, bernoulli=False)
    return cache_checks(bonus_agent(name, data, b=0.5, steps=5), data, f"mutant, {name}")


def batches(name: str) -> list[Check]:
    return svrg_sum_checks(name, shared=False, bernoulli=True)


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
    #: How many of the checks are quick tests. Of each check at least one is; none where another
    #: mutant is noticed by the same check in a quick test.
    quick: int = 1

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
        quick=0,
    ),
    Mutant(
        "β dropped from the MALA ratio",
        MALA,
        "step",
        "beta * (chain.value - value) + densities",
        "(chain.value - value) + densities",
        ((gaussian, "malats"),),
        quick=0,
    ),
    Mutant(
        "β dropped from the HMC ratio",
        HMC,
        "step",
        "beta * (chain.value - value) + kinetic",
        "(chain.value - value) + kinetic",
        ((gaussian, "hmcts"),),
        quick=0,
    ),
    Mutant(
        "kinetic energy left out of the HMC ratio",
        HMC,
        "step",
        "beta * (chain.value - value) + kinetic",
        "beta * (chain.value - value)",
        ((gaussian, "hmcts"),),
        quick=0,
    ),
    Mutant(
        "bonus evaluated at the old θ",
        LinearModelTarget,
        "with_bonus",
        "bonus.evaluate(memo, self.data.rows, theta, uniform)",
        "bonus.evaluate(memo, self.data.rows, self.origin, uniform)",
        ((energy, "fglmcts"), (stationary, "fglmcts"), (target, "fgmalats")),
        quick=2,
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
        quick=0,
    ),
    Mutant(
        "V⁻¹ drift with V⁻¹ noise",
        lmc,
        "langevin",
        "jnp.sqrt(2.0 * h / tuning.beta) * normal",
        "jnp.sqrt(2.0 * h / tuning.beta) * tuning.whiten(normal)",
        ((gaussian, "plmcts"), (stationary, "pfglmcts")),
        quick=0,
    ),
    Mutant(
        "Langevin noise √(h/β)",
        lmc,
        "langevin",
        "jnp.sqrt(2.0 * h / tuning.beta)",
        "jnp.sqrt(h / tuning.beta)",
        ((gaussian, "lmcts"),),
        quick=0,
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
        "1.0 * state.count",
        "state.count - 1.0",
        ((student_checks, "lints"),),
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
)


@pytest.mark.parametrize(
    ("mutant", "check", "name"),
    [
        pytest.param(
            mutant,
            check,
            name,
            id=f"{mutant.what}: {check.__name__} {name}",
            marks=() if number < mutant.quick else pytest.mark.slow,
        )
        for mutant in MUTANTS
        for number, (check, name) in enumerate(mutant.caught_by)
    ],
)
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
