"""With which probability an agent plays each arm."""

from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Float

from feelgood.core.policy import Policy
from feelgood.core.spec import Spec
from feelgood.stats.choice_probabilities import ChoiceProbabilities, choice_probabilities


def propensity(
    policy: Policy,
    spec: Spec,
    state: Any,
    drawn: Any,
    context: Float[Array, "..."],
    mask: Any = None,
) -> ChoiceProbabilities | None:
    """The probabilities of one chain's round; None where the agent has none, or none with a mask.

    `state` is that before `draw`, which the agent's own rule `Hints.pmf` takes. `drawn` is that
    after it, which `Hints.scores` takes. A rule's formula is about all arms, so that there is none
    for some of them; a law of scores may leave arms out.

    **Example:**

    >>> import jax
    >>> import jax.numpy as jnp
    >>> import feelgood
    >>> from feelgood.engine.propensities import propensity
    >>> agent, spec = feelgood.AGENTS["uniform"].build(), feelgood.Spec(arms=4, dim=2)
    >>> state = agent.init(jax.random.key(0), spec)
    >>> propensity(agent, spec, state, state, jnp.ones(2)).pmf
    array([0.25, 0.25, 0.25, 0.25])
    """
    hints = policy.hints(spec)
    if hints.pmf is not None:
        if mask is not None and not np.all(mask):
            return None
        pmf = np.asarray(hints.pmf(state, context), np.float64)
        return ChoiceProbabilities(pmf, np.zeros_like(pmf))
    if hints.scores is None:
        return None
    law = jax.tree.map(np.asarray, hints.scores(drawn, context))
    return choice_probabilities(law, mask)
