"""How good are the posteriors? Draws of agents against exact laws, with Monte Carlo errors.

Imports what is below: the engine, agents, testbeds, targets, stats and core.
"""

from feelgood.posterior.along import PosteriorWatch, measure_state, posterior_watch
from feelgood.posterior.analysis import PAPER_FIGURE, analyse, analyse_each
from feelgood.posterior.analysis_results import AgentPosterior, Analysis, PosteriorComparison
from feelgood.posterior.calibration import Calibration, calibrate
from feelgood.posterior.draw_comparison import Sampling, compare
from feelgood.posterior.laws import Law, exact_posterior, own_target
from feelgood.posterior.matched_settings import matched_settings
from feelgood.posterior.measure_rows import MEASURES, MeasureRow
from feelgood.posterior.measures import measure
from feelgood.posterior.verdicts import PosteriorVerdict, judge

__all__ = [
    "MEASURES",
    "PAPER_FIGURE",
    "AgentPosterior",
    "Analysis",
    "Calibration",
    "Law",
    "MeasureRow",
    "PosteriorComparison",
    "PosteriorVerdict",
    "PosteriorWatch",
    "Sampling",
    "analyse",
    "analyse_each",
    "calibrate",
    "compare",
    "exact_posterior",
    "judge",
    "matched_settings",
    "measure",
    "measure_state",
    "own_target",
    "posterior_watch",
]
