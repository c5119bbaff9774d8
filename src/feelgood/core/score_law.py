"""The law of the scores whose largest an agent plays."""

from typing import Any, NamedTuple


class ScoreLaw(NamedTuple):
    """Scores are mean + √(freedom/χ²) · spread z, z standard normal, χ² with `freedom` degrees.

    One χ² is common to all arms: with `freedom` given the scores are Student-t, else normal. Either
    `deviation` or `root` is given. Arrays of JAX or NumPy, with the lanes of the state behind.

    **Example:**

    >>> import numpy as np
    >>> from feelgood.core.score_law import ScoreLaw
    >>> from feelgood.stats.choice_probabilities import choice_probabilities
    >>> law = ScoreLaw(mean=np.array([0.0, 0.0, 0.0]), deviation=np.array([1.0, 1.0, 1.0]))
    >>> choice_probabilities(law).pmf.round(6)  # three arms that are alike
    array([0.333333, 0.333333, 0.333333])
    """

    #: `[arms, *lanes]`.
    mean: Any
    #: `[arms, *lanes]`, where the arms' scores are independent: each arm has a z of its own.
    deviation: Any = None
    #: `[arms, normals, *lanes]`, where arms share what is drawn: the score of arm a is
    #: mean_a + root_a · z.
    root: Any = None
    #: `[*lanes]`; None: the scores are normal.
    freedom: Any = None
