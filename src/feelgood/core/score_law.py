"""The law of the scores whose largest an agent plays."""

from typing import Any, NamedTuple


class ScoreLaw(NamedTuple):
    """Scores are mean + √(freedom/χ²) · spread z, z standard normal, χ² with `freedom` degrees.

    One χ² is common to all arms: with `freedom` given the scores are Student-t, else normal. Either
    `deviation` or `root` is given. Arrays of JAX or NumPy, with the lanes of the state behind.
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
