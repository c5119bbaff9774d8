"""Settings with which an agent's target is the exact posterior: equal temperatures."""

from collections.abc import Mapping
from typing import Any

from feelgood.errors import FeelgoodError
from feelgood.paper import preset_settings
from feelgood.protocols import AGENTS, Testbed

#: Precision of the prior from which testbeds draw their true parameters.
PRECISION = 1.0
#: What a model with normal noise assumes of Bernoulli rewards, whose deviation is at most this.
BERNOULLI_NOISE = 0.5


def noise_of(name: str, testbed: Testbed) -> float:
    """The standard deviation of the testbed's rewards."""
    if testbed.spec.rewards == "bernoulli":
        return BERNOULLI_NOISE
    noise = float(getattr(testbed, "noise", 0.0))
    if noise <= 0.0:
        raise FeelgoodError(
            f"{name} has no noise in its rewards, so it has no posterior: use a linear testbed."
        )
    return noise


def matched_settings(
    agent: str, testbed: Testbed, noise: float, precision: float = PRECISION
) -> dict[str, Any]:
    """Settings that make exp(−βL) the posterior with this noise and the prior N(0, I/precision).

    For exp(−β[η Σ(f − r)² + ρ‖θ‖²]) that is β = 1, η = 1/(2·noise²), ρ = precision/2 (and η = 1
    for the Bernoulli loss); for a ridge posterior N(V⁻¹b, V⁻¹/η), V = ρI + Σ x xᵀ, it is
    η = 1/noise², ρ = noise²·precision. Agents with neither pair of settings get none.
    """
    known = AGENTS[agent].settings
    if {"beta", "eta", "rho"} <= set(known):
        bernoulli = testbed.spec.rewards == "bernoulli"
        eta = 1.0 if bernoulli else 0.5 / noise**2
        return {"beta": 1.0, "eta": eta, "rho": 0.5 * precision}
    if {"eta", "rho"} <= set(known):
        return {"eta": 1.0 / noise**2, "rho": noise**2 * precision}
    return {}


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
