"""How a quantity is spread over seeds."""

import dataclasses

import numpy as np
from jaxtyping import Float

#: One value per seed. NaN: the chain of that seed diverged.
PerSeed = Float[np.ndarray, " seeds"]
#: One value per seed too, perhaps over other seeds, so that the number may differ from `PerSeed`.
OtherSeeds = Float[np.ndarray, " others"]


@dataclasses.dataclass(frozen=True)
class Summary:
    """How a quantity is spread over seeds."""

    count: int
    mean: float
    std: float
    sem: float
    median: float
    q25: float
    q75: float

    @classmethod
    def of(cls, values: Float[np.ndarray, " seeds"]) -> "Summary":
        """Sample mean, standard deviation (n − 1), its standard error, median and quartiles.

        Chains that diverged are NaN and left out; `count` says how many are in.
        """
        kept = values[np.isfinite(values)]
        n = len(kept)
        if n == 0:
            nan = float("nan")
            return cls(0, nan, nan, nan, nan, nan, nan)
        std = float(np.std(kept, ddof=1)) if n > 1 else float("nan")
        q25, median, q75 = (float(q) for q in np.quantile(kept, [0.25, 0.5, 0.75]))
        return cls(n, float(np.mean(kept)), std, std / float(np.sqrt(n)), median, q25, q75)
