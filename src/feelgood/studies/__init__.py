"""Studies: grids of agents × testbeds × settings × seeds that survive interruptions.

Imports posterior, engine and what is below them; knows nothing of the paper and of reports.
"""

from feelgood.studies.driver import StudyOutcome, Watcher, run_study
from feelgood.studies.files import StudyFile, read_study
from feelgood.studies.planning import Cell, Study, plan_cells
from feelgood.studies.store import Store
from feelgood.studies.tuned_studies import TunedStudy

__all__ = [
    "Cell",
    "Store",
    "Study",
    "StudyFile",
    "StudyOutcome",
    "TunedStudy",
    "Watcher",
    "plan_cells",
    "read_study",
    "run_study",
]
