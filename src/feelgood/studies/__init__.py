"""Studies: grids of agents × testbeds × settings × seeds that survive interruptions."""

from feelgood.studies.running import run_study
from feelgood.studies.spec import Cell, Study, plan_cells, read_study
from feelgood.studies.store import Store

__all__ = ["Cell", "Store", "Study", "plan_cells", "read_study", "run_study"]
