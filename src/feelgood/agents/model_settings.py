"""What a linear Thompson agent believes of the rewards: noise, prior and temperature.

The paper speaks of β, η and ρ instead. An agent takes either vocabulary, and refuses a mixture.
"""

from typing import ClassVar

import jax.numpy as jnp

from feelgood.core.errors import FeelgoodError
from feelgood.core.policy import Policy
from feelgood.core.settings import public, setting
from feelgood.core.spec import Number
from feelgood.targets.scales import ScaleModel


class BeliefPolicy(Policy):
    """An agent with the model r = x·θ + N(0, noise²), θ ~ N(0, prior² I).

    "learned" noise and prior are estimated on the way (`feelgood.targets.scales`).
    """

    #: The settings of the paper's vocabulary.
    papers: ClassVar[tuple[str, ...]] = ("beta", "eta", "rho")

    noise: Number | None = setting(
        "learned",
        "standard deviation of the rewards' noise",
        above=0.0,
        high=1e9,
        open_word="learned",
    )
    prior: Number | None = setting(
        "learned",
        "standard deviation of the parameters before any data",
        above=0.0,
        high=1e9,
        open_word="learned",
    )

    def __check_init__(self) -> None:
        given = {name: getattr(self, name) for name in self.papers if hasattr(self, name)}
        papers = [name for name, value in given.items() if value is not None]
        for name in ("noise", "prior"):
            value = getattr(self, name)
            if value is not None and papers:
                raise FeelgoodError(
                    f"{name} = {_shown(value)} and {papers[0]} = {_shown(given[papers[0]])} belong "
                    f"to different vocabularies: give noise and prior, or {', '.join(given)}."
                )

    def scale_model(self) -> ScaleModel | None:
        """What is learned of noise and prior; None where both are told."""
        if self.in_papers_words() or (self.noise is not None and self.prior is not None):
            return None

        def square(value: Number | None) -> Number | None:
            return None if value is None else value**2

        return ScaleModel(noise=square(self.noise), prior=square(self.prior))

    def in_papers_words(self) -> bool:
        """Whether a setting of the paper's vocabulary is given."""
        return any(getattr(self, name, None) is not None for name in self.papers)


class ModelPolicy(BeliefPolicy):
    """The same for an agent that draws parameters: from the posterior at `temperature` 1."""

    temperature: Number = setting(
        1.0,
        "temperature: 1 draws from the posterior, less is greedier",
        above=0.0,
        high=1e9,
        tune=(0.01, 10.0),
    )


def _shown(value: Number | None) -> object:
    return "a sweep" if value is not None and jnp.ndim(value) else public(value)
