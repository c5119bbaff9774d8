"""How good are the posteriors? Draws of agents against exact laws, with Monte Carlo errors."""

from feelgood.posterior.along import PosteriorWatch, measure_state, posterior_watch
from feelgood.posterior.analysis import (
    PAPER_FIGURE,
    AgentPosterior,
    Analysis,
    Comparison,
    analyse,
    analyse_each,
    compare,
)
from feelgood.posterior.calibration import Calibration, calibrate
from feelgood.posterior.laws import Law, exact_posterior, own_target
from feelgood.posterior.measures import MEASURES, Row, Verdict, judge, measure
from feelgood.posterior.settings import matched_settings

__all__ = [
    "MEASURES",
    "PAPER_FIGURE",
    "AgentPosterior",
    "Analysis",
    "Calibration",
    "Comparison",
    "Law",
    "PosteriorWatch",
    "Row",
    "Verdict",
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
