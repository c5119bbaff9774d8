"""Ways to evaluate the feel-good bonus, all for the same function. Imports other targets.

- `FullPass` reads every stored context; `Columns` and `Products` are the same for many chains on
  an accelerator.
- `SeedPrograms` is what `Products` is, as one kernel that reads the filled part once per seed.
- `Pruned` is exact too, but reads only the contexts whose best arm could have changed. It needs a
  `FeelGood`, which is straight below b: behind a link a settled context has no sum to go into.
- `SeedStrips` is exact and prunes, too, strip by strip, where arms share parameters. It keeps what
  the best arms showed, so that φ may have any form.
- `Subsampled` is an unbiased estimate of the gradient (`bonus_gradient = "svrg"`). It has no
  value, so Metropolis kernels cannot use it.
"""

from feelgood.core.spec import Spec
from feelgood.numerics import lanes
from feelgood.targets.bonus import Bonus, FeelGood
from feelgood.targets.evaluators.accelerator import Columns, Products
from feelgood.targets.evaluators.evaluator import Evaluator
from feelgood.targets.evaluators.full import FullPass
from feelgood.targets.evaluators.pruned import Pruned
from feelgood.targets.evaluators.seed_programs import SeedPrograms
from feelgood.targets.evaluators.seed_strips import SeedStrips
from feelgood.targets.evaluators.subsampled import Subsampled
from feelgood.targets.history import WRITTEN_OUT_DIMENSIONS

__all__ = [
    "Columns",
    "Evaluator",
    "FullPass",
    "Products",
    "Pruned",
    "SeedPrograms",
    "SeedStrips",
    "Subsampled",
    "evaluator_for",
]


def evaluator_for(
    bonus: Bonus, spec: Spec, *, short_moves: bool, batch: int, others_read: bool = False
) -> Evaluator:
    """The evaluator that suits the layout of the chains.

    `short_moves`: a step moves the chain by much less than the posterior is wide. Pruning pays for
    such moves of one chain. It does not for trajectories, which move far, nor where all histories
    are read together. `batch`: rounds of a batch that estimates the gradient; 0: it is exact.
    `others_read`: not only the evaluator reads past contexts.
    """
    few = spec.arms <= lanes.WRITTEN_OUT_ARMS  # `Columns` writes its arms out
    inner: Evaluator
    keeps = spec.shared and batch == 0 and not others_read
    if keeps and spec.layout.steps != "together" and spec.lanes:
        inner = SeedPrograms(bonus=bonus, spec=spec)
    elif keeps and not spec.layout.reads_all and spec.dim <= WRITTEN_OUT_DIMENSIONS:
        inner = SeedStrips(bonus=bonus, spec=spec)
    elif spec.layout.reads_all and spec.lanes and (spec.shared or few):
        inner = (Products if spec.shared else Columns)(bonus=bonus, spec=spec)
    elif not spec.lanes and not spec.shared and short_moves and isinstance(bonus, FeelGood):
        inner = Pruned(bonus=bonus, spec=spec)
    else:
        inner = FullPass(bonus=bonus, spec=spec)
    return inner if batch == 0 else Subsampled(bonus=bonus, spec=spec, inner=inner, batch=batch)
