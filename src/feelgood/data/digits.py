"""Digits: handwritten ones of 8 × 8 pixels, which scikit-learn brings along."""

import numpy as np

from feelgood.data.catalogue import Arrays, Labelled, Problem, register_problem
from feelgood.data.datasets import DataAbsent


def _rows(_: Arrays) -> Labelled:
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise DataAbsent(
            "digits needs scikit-learn: install it with pip install 'feelgood[digits]'."
        ) from None
    images = load_digits()
    return Labelled(images.data.astype(np.uint8), images.target.astype(np.int32), "pixel")


register_problem(
    Problem(
        "digits",
        "Handwritten digits of 8 × 8 pixels; needs scikit-learn.",
        _rows,
        arms=10,
        horizon=2_000,
        elsewhere="part of scikit-learn: pip install 'feelgood[digits]' brings it along",
    )
)
