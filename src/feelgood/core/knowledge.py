"""What an agent may be told of a problem beyond its shape: the prior that is right, or not.

Both kinds are about arms that show the same in every round, so that the mean rewards are a few
unknown numbers. All fields are numbers and tuples: a problem with its knowledge is hashable, and
so part of what a program is compiled for.
"""

import dataclasses
import math
from collections.abc import Sequence
from typing import TypeAlias

from feelgood.core.errors import FeelgoodError, shown


@dataclasses.dataclass(frozen=True)
class FiniteClass:
    """One of finitely many vectors of mean rewards is right, and the noise is normal.

    **Example:**

    >>> from feelgood.core.knowledge import FiniteClass
    >>> # Arm 1 pays 1 with a prior mass of 1 %, and else −1; arm 0 pays 0.
    >>> FiniteClass(means=((0.0, 1.0), (0.0, -1.0)), masses=(0.01, 0.99), noise=1.0).arms
    2
    """

    #: The mean reward of every arm, for every member of the class.
    means: tuple[tuple[float, ...], ...]
    #: The prior mass of every member; they need not sum to 1.
    masses: tuple[float, ...]
    #: Standard deviation of the rewards.
    noise: float

    def __post_init__(self) -> None:
        if not self.means or len({len(row) for row in self.means}) != 1:
            raise FeelgoodError("a class of mean rewards needs one number per member and arm.")
        if len(self.masses) != len(self.means) or not all(m > 0.0 for m in self.masses):
            raise FeelgoodError(
                f"masses = {shown(self.masses)} is not allowed: give one number above 0 for each "
                f"of the {len(self.means)} members of the class."
            )
        _require_noise(self.noise)

    @property
    def arms(self) -> int:
        """How many there are."""
        return len(self.means[0])


@dataclasses.dataclass(frozen=True)
class GaussianArms:
    """The mean rewards of the arms are normal, N(mean, covariance), and so is the noise.

    With several `copies`, the context chooses one of so many independent copies of the arms. Its
    coordinates are then cut into as many equal parts, all 0 but for the part of the copy.

    **Example:**

    >>> from feelgood.core.knowledge import GaussianArms
    >>> arms = GaussianArms(mean=(0.0, 0.5), covariance=((1.0, 0.0), (0.0, 0.1)), noise=1.0)
    >>> arms.arms, arms.independent
    (2, True)
    """

    mean: tuple[float, ...]
    covariance: tuple[tuple[float, ...], ...]
    #: Standard deviation of the rewards.
    noise: float
    copies: int = 1

    def __post_init__(self) -> None:
        arms = len(self.mean)
        if len(self.covariance) != arms or any(len(row) != arms for row in self.covariance):
            raise FeelgoodError(
                f"covariance = {shown(self.covariance)} is not allowed: give {arms} rows of {arms}."
            )
        if not all(self.covariance[i][i] > 0.0 for i in range(arms)):
            raise FeelgoodError(
                f"covariance = {shown(self.covariance)} is not allowed: variances are above 0."
            )
        if not self.independent and (arms != 2 or not self._is_covariance_of_two()):
            raise FeelgoodError(
                f"covariance = {shown(self.covariance)} is not allowed: arms are independent, or "
                "two that differ with a correlation of −1 or more and below 1."
            )
        _require_noise(self.noise)

    def _is_covariance_of_two(self) -> bool:
        (a, b), (c, d) = self.covariance
        return b == c and b * b <= a * d and a + d - 2.0 * b > 0.0

    @property
    def arms(self) -> int:
        """How many there are."""
        return len(self.mean)

    @property
    def independent(self) -> bool:
        """Whether the arms' means have nothing to do with each other."""
        pairs = ((i, j) for i in range(self.arms) for j in range(self.arms) if i != j)
        return all(self.covariance[i][j] == 0.0 for i, j in pairs)

    @classmethod
    def alone(cls, deviations: Sequence[float], noise: float, copies: int = 1) -> "GaussianArms":
        """Independent arms with the prior N(0, deviation²) each."""
        arms = range(len(deviations))
        rows = tuple(tuple(deviations[i] ** 2 if i == j else 0.0 for j in arms) for i in arms)
        return cls((0.0,) * len(deviations), rows, noise, copies)


Knowledge: TypeAlias = FiniteClass | GaussianArms


def _require_noise(noise: float) -> None:
    if not (noise > 0.0 and math.isfinite(noise)):
        raise FeelgoodError(f"noise = {shown(noise)} is not allowed: use a number above 0.")
