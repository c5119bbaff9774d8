"""Draws for ArviZ, so that people can use the diagnostics they know."""

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from feelgood.core.errors import FeelgoodError, missing_package
from feelgood.posterior.analysis_results import AgentPosterior


def import_arviz() -> Any:
    """ArviZ, or one sentence that says how to get it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it announces its own next version at import
            import arviz
    except ImportError:
        raise missing_package("draws for ArviZ need", "arviz", "arviz") from None
    return arviz


def to_inference_data(results: Sequence[AgentPosterior]) -> Any:
    """An `arviz.InferenceData` with one variable per agent, [chain, draw, block, coordinate].

    The exact posterior's means and covariances are in the group `constant_data`. With several
    data sets per agent the variables are named `agent_seedN`.
    """
    if not results:
        raise FeelgoodError("there are no draws to export: give at least one agent.")
    arviz = import_arviz()
    several = len({r.seed for r in results}) > 1
    names = [f"{r.agent}_seed{r.seed}" if several else r.agent for r in results]
    dims = {name: ["block", "coordinate"] for name in names}
    constants: dict[str, Any] = {}
    for name, result in zip(names, results, strict=True):
        for law_name, law in result.laws.items():
            mean, covariance = f"{name}_{law_name}_mean", f"{name}_{law_name}_covariance"
            constants |= {mean: law.mean, covariance: law.covariance}
            dims |= {mean: ["block", "coordinate"]}
            dims |= {covariance: ["block", "coordinate", "other_coordinate"]}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "More chains")  # many short chains are intended
        return arviz.from_dict(
            posterior={name: result.draws for name, result in zip(names, results, strict=True)},
            constant_data=constants,
            dims=dims,
            attrs={"created_by": "feelgood"},
        )


def write_netcdf(results: Sequence[AgentPosterior], path: Path) -> None:
    """The draws as a netCDF file that `arviz.from_netcdf` opens."""
    to_inference_data(results).to_netcdf(str(path), engine="h5netcdf")
