"""Settings with which an agent's target is the exact posterior: equal temperatures."""

from collections.abc import Mapping
from typing import Any

import jax

from feelgood.core.errors import FeelgoodError
from feelgood.core.lookup import preset_settings
from feelgood.core.policy import AGENTS
from feelgood.core.testbed import Testbed
from feelgood.engine.compiling import in_own_precision
from feelgood.numerics import generator

#: Precision of the prior from which testbeds draw their true parameters.
PRECISION = 1.0
#: What a model with normal noise assumes of Bernoulli rewards, whose deviation is at most this.
BERNOULLI_NOISE = 0.5


@in_own_precision
def has_truth(testbed: Testbed) -> bool:
    """Whether the testbed's rewards are those of a linear model, by its own word."""
    truth = jax.eval_shape(lambda key: testbed.truth(testbed.init(key)), generator.key(0))
    return truth is not None


def noise_of(name: str, testbed: Testbed) -> float:
    """The standard deviation of the testbed's rewards."""
    if testbed.spec.rewards == "bernoulli":
        return BERNOULLI_NOISE
    noise = testbed.reward_noise()
    if noise is None:
        raise FeelgoodError(
            f"{name} does not say that its rewards have normal noise, so it has no posterior: "
            "use a linear testbed."
        )
    if float(noise) <= 0.0:
        raise FeelgoodError(
            f"{name} has no noise in its rewards, so it has no posterior: use a linear testbed."
        )
    return float(noise)


def matched_settings(
    agent: str, testbed: Testbed, noise: float, precision: float = PRECISION
) -> dict[str, Any]:
    """Settings with which the agent's target is the posterior, as the agent says."""
    matched = AGENTS[agent].build().hints(testbed.spec).matched
    return {} if matched is None else matched(noise, precision)


def agent_settings(
    agent: str,
    testbed_name: str,
    testbed: Testbed,
    rounds: int,
    *,
    preset: str | None,
    steps: int | None,
    given: Mapping[str, Any],
    precision: float = PRECISION,
) -> dict[str, Any]:
    """Matched settings, or those of a preset; then the inner steps; then what was given."""
    known = AGENTS[agent].settings
    if preset is None:
        noise = noise_of(testbed_name, testbed)
        values = matched_settings(agent, testbed, noise, precision)
    else:
        values = preset_settings(preset, agent, testbed_name, testbed.spec, rounds)
        values = {key: value for key, value in values.items() if key in known}
    if steps is not None and "steps" in known:
        values["steps"] = steps
    return {**values, **given}
