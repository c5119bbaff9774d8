"""The law π ∝ exp(−βL) of the agents that sample it by MCMC, in both vocabularies."""

from typing import Any, ClassVar, NamedTuple

import jax.numpy as jnp

from feelgood.agents.model_settings import ModelPolicy
from feelgood.core.settings import setting
from feelgood.core.spec import LinearTarget, Number, Spec
from feelgood.targets.bonus import FeelGood
from feelgood.targets.losses import LOSSES, loss_for
from feelgood.targets.scales import Scales


class Coefficients(NamedTuple):
    """The numbers of exp(−β [Σ ηℓ + ρ‖θ‖² − bonus])."""

    beta: Number
    eta: Number
    rho: Number


def _papers(doc: str, high: float = 1e9) -> Any:
    return setting("auto", doc, above=0.0, high=high, open_word="auto")


class GibbsPolicy(ModelPolicy):
    """An agent whose target is exp(−βL).

    In the user's words β = 1/temperature, η = 1/(2 noise²) and ρ = 1/(2 prior²): the posterior at
    temperature 1. Bernoulli rewards have no noise of their own, and η = 1. In the paper's words β,
    η and ρ are given, and the temperature divides β.
    """

    #: β, η and ρ where only some of the three are given.
    usual: ClassVar[dict[str, float]] = {"beta": 1.0, "eta": 1.0, "rho": 0.01}

    beta: Number | None = _papers("the paper's inverse temperature β; auto: 1")
    eta: Number | None = _papers("the paper's weight η of the data; auto: 1/(2 noise²)")
    rho: Number | None = _papers("the paper's coefficient ρ of ‖θ‖²; auto: 1/(2 prior²)")
    likelihood: str = setting("auto", "loss; auto follows the testbed", choices=LOSSES)

    def first_scales(self, spec: Spec) -> Scales | None:
        """Noise and prior before the first reward; None where nothing is learned."""
        model = self.scale_model()
        return None if model is None else model.init(spec)

    def coefficients(self, spec: Spec, scales: Scales | None) -> Coefficients:
        """The target's numbers, with what has been learned so far."""
        squared = loss_for(self.likelihood, spec) == "squared"
        if self.in_papers_words():
            given = {name: getattr(self, name) for name in self.usual}
            filled = {n: self.usual[n] if v is None else v for n, v in given.items()}
            law = Coefficients(**{n: jnp.asarray(v, jnp.float32) for n, v in filled.items()})
        else:
            if scales is None:
                assert self.noise is not None and self.prior is not None
                noise, prior = self.noise**2, self.prior**2
            else:
                noise, prior = scales.noise, scales.prior
            eta = 0.5 / noise if squared else jnp.ones(())
            law = Coefficients(beta=jnp.ones(()), eta=eta, rho=0.5 / prior)
        return law._replace(beta=law.beta / self.temperature)

    def linear_target(self, spec: Spec, bonus: FeelGood | None) -> LinearTarget:
        """What the target is as a law of a linear model's parameters."""
        if self.scale_model() is not None:
            return LinearTarget(weight=None, prior=None, loss=loss_for(self.likelihood, spec))
        law = self.coefficients(spec, None)
        by = 2.0 * float(law.beta)
        return LinearTarget(
            weight=by * float(law.eta),
            prior=by * float(law.rho),
            loss=loss_for(self.likelihood, spec),
            bonus=bonus,
            beta=float(law.beta),
        )

    @staticmethod
    def matched(spec: Spec, noise: float, precision: float) -> dict[str, float]:
        """Settings with which the target is the posterior with prior N(0, I/precision).

        β = 1, η = 1/(2·noise²), ρ = precision/2; and η = 1 for the Bernoulli loss.
        """
        eta = 1.0 if spec.rewards == "bernoulli" else 0.5 / noise**2
        return {"beta": 1.0, "eta": eta, "rho": 0.5 * precision}
