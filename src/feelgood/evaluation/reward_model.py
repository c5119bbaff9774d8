"""The model q̂ of rewards behind the direct method and the doubly robust estimate."""

import numpy as np
from jaxtyping import Float

from feelgood.evaluation.log_arrays import LogArrays

#: Precisions of the prior of the coefficients, beside a noise of 1, among which the log chooses.
PRECISIONS = (1.0, 10.0, 100.0, 1e3, 1e4)


class RidgeModel:
    """Ridge regression of r − r̄ on the context, one per arm, or one for the features of all arms.

    q̂(x, a) = r̄ + xᵀ (Σ x xᵀ + λ I)⁻¹ Σ x (r − r̄), with r̄ the mean of all rewards so far. λ is the
    one whose predictions of each block, made before it was learned, have been best so far. The
    model is used for decisions that it has not learned from, so that the doubly robust estimate
    stays unbiased.
    """

    def __init__(self, log: LogArrays) -> None:
        dim = log.contexts.shape[-1]
        models = 1 if log.shared else len(log.arms)
        self._shared = log.shared
        self._squares = np.zeros((models, dim, dim))
        self._sums = np.zeros((models, dim))
        self._paid = np.zeros((models, dim))
        self._total, self._count = 0.0, 0
        self._errors = np.zeros(len(PRECISIONS))

    @property
    def precision(self) -> float:
        """λ: of those with the same error the largest."""
        return PRECISIONS[len(PRECISIONS) - 1 - int(np.argmin(self._errors[::-1]))]

    def learn(self, log: LogArrays) -> None:
        """Add decisions, once every λ has predicted them."""
        everywhere = np.arange(len(log))
        if self._count:
            for place, precision in enumerate(PRECISIONS):
                guessed = self._predict(log, precision)[everywhere, log.played]
                self._errors[place] += float(((log.rewards - guessed) ** 2).sum())
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
        return self._predict(log, self.precision)

    def _predict(self, log: LogArrays, precision: float) -> Float[np.ndarray, "decisions arms"]:
        mean = self._total / max(self._count, 1)
        right = self._paid - mean * self._sums
        left = self._squares + precision * np.eye(right.shape[1])
        slopes = np.linalg.solve(left, right[..., None])[..., 0]
        x = log.contexts.astype(np.float64)
        return mean + (x @ slopes[0] if self._shared else x @ slopes.T)
