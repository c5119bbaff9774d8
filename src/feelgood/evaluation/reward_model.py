"""The model q̂ of rewards behind the direct method and the doubly robust estimate."""

import numpy as np
from jaxtyping import Float

from feelgood.evaluation.log_arrays import LogArrays

#: Precision of the prior of every coefficient, beside a noise of 1.
PRECISION = 1.0


class RidgeModel:
    """Ridge regression of r − r̄ on the context, one per arm, or one for the features of all arms.

    q̂(x, a) = r̄ + xᵀ (Σ x xᵀ + I)⁻¹ Σ x (r − r̄), with r̄ the mean of all rewards so far. It is used
    for decisions that it has not learned from, so that the doubly robust estimate stays unbiased.
    """

    def __init__(self, log: LogArrays) -> None:
        dim = log.contexts.shape[-1]
        models = 1 if log.shared else len(log.arms)
        self._shared = log.shared
        self._squares = np.tile(PRECISION * np.eye(dim), (models, 1, 1))
        self._sums = np.zeros((models, dim))
        self._paid = np.zeros((models, dim))
        self._total, self._count = 0.0, 0

    def learn(self, log: LogArrays) -> None:
        """Add decisions."""
        everywhere = np.arange(len(log))
        seen = log.contexts[everywhere, log.played] if self._shared else log.contexts
        x = seen.astype(np.float64)
        model = np.zeros(len(log), int) if self._shared else log.played
        for one in np.unique(model):
            mine = model == one
            self._squares[one] += x[mine].T @ x[mine]
            self._sums[one] += x[mine].sum(axis=0)
            self._paid[one] += log.rewards[mine] @ x[mine]
        self._total += float(log.rewards.sum())
        self._count += len(log)

    def predict(self, log: LogArrays) -> Float[np.ndarray, "decisions arms"]:
        """q̂ of every arm for every decision."""
        mean = self._total / max(self._count, 1)
        right = self._paid - mean * self._sums
        slopes = np.linalg.solve(self._squares, right[..., None])[..., 0]
        if self._shared:
            return mean + log.contexts.astype(np.float64) @ slopes[0]
        return mean + log.contexts.astype(np.float64) @ slopes.T
