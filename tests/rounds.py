"""One round of an agent, as the engine plays it."""

from typing import Any

from feelgood import Policy, Spec
from feelgood.numerics.noise import round_noise


def drawn(policy: Policy, spec: Spec, key: Any, state: Any) -> Any:
    """The state with new parameters."""
    return policy.draw(round_noise(key, policy.needs(spec)).draw, state)


def decide(policy: Policy, spec: Spec, key: Any, state: Any, context: Any) -> Any:
    """The arm that is played, and the state with the parameters that chose it."""
    noise = round_noise(key, policy.needs(spec))
    state = policy.draw(noise.draw, state)
    return policy.choose(noise.choose, state, context), state


def redraw(policy: Policy, spec: Spec, key: Any, state: Any) -> Any:
    """New parameters, and the state with them."""
    state = drawn(policy, spec, key, state)
    return policy.report(state).parameters, state
