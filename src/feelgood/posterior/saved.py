"""An analysis in a folder: posterior.json, measures.parquet, draws.parquet and laws.parquet.

No code of ours is needed to read it; `read_analysis` puts it together again for figures and pages.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from feelgood.core.arrow import pa, pc, pq
from feelgood.core.errors import FeelgoodError
from feelgood.core.parquet import read_parquet
from feelgood.posterior.analysis_results import AgentPosterior, Analysis, PosteriorComparison
from feelgood.posterior.laws import Law
from feelgood.posterior.measure_rows import MeasureRow
from feelgood.posterior.verdicts import PosteriorVerdict

_SUMMARY, _MEASURES, _DRAWS, _LAWS = (
    *("posterior.json", "measures.parquet"),
    *("draws.parquet", "laws.parquet"),
)
#: The files of the folder.
FILES = (_SUMMARY, _MEASURES, _DRAWS, _LAWS)


def is_analysis(folder: Path) -> bool:
    """Whether `feelgood posterior --out` wrote this folder."""
    return all((folder / name).is_file() for name in FILES)


def writers(analysis: Analysis) -> dict[str, Callable[[Path], object]]:
    """What writes each file of the folder."""
    text = json.dumps(analysis.to_json(), indent=1, allow_nan=False) + "\n"
    tables = {
        _MEASURES: pa.Table.from_pylist(analysis.table()),
        _DRAWS: _draws(analysis),
        _LAWS: _laws(analysis),
    }

    def writing(table: pa.Table) -> Callable[[Path], object]:
        return lambda path: pq.write_table(
            table, path, compression="zstd", write_page_checksum=True
        )

    return {
        _SUMMARY: lambda path: path.write_text(text),
        **{name: writing(table) for name, table in tables.items()},
    }


def _draws(analysis: Analysis) -> pa.Table:
    """One row per draw: θ of all blocks, one after the other, as the agents hold it in float32."""
    columns: dict[str, list[Any]] = {name: [] for name in ("agent", "seed", "chain", "draw")}
    thetas = []
    for a in analysis.agents:
        chains, draws = a.draws.shape[:2]
        columns["agent"] += [a.agent] * (chains * draws)
        columns["seed"] += [a.seed] * (chains * draws)
        columns["chain"] += np.repeat(np.arange(chains), draws).tolist()
        columns["draw"] += np.tile(np.arange(draws), chains).tolist()
        thetas += a.draws.reshape(chains * draws, -1).astype(np.float32).tolist()
    return pa.table({**columns, "theta": pa.array(thetas, pa.list_(pa.float32()))})


def _laws(analysis: Analysis) -> pa.Table:
    """One row per law: the exact posterior, and the agent's own target where it is another."""
    return pa.Table.from_pylist(
        [
            {
                "agent": a.agent,
                "seed": a.seed,
                "law": name,
                "blocks": law.mean.shape[0],
                "dim": law.mean.shape[1],
                "mean": law.mean.ravel().tolist(),
                "covariance": law.covariance.ravel().tolist(),
            }
            for a in analysis.agents
            for name, law in a.laws.items()
        ]
    )


def read_analysis(folder: Path) -> Analysis:
    """The analysis that was written to a folder; a law that is known by draws has its moments."""
    if not is_analysis(folder):
        raise FeelgoodError(
            f"{folder} holds no posterior analysis: give the folder that 'feelgood posterior "
            "--out' wrote."
        )
    try:
        summary = json.loads((folder / _SUMMARY).read_bytes())
        laws = read_parquet((folder / _LAWS).read_bytes()).to_pylist()
        draws = read_parquet((folder / _DRAWS).read_bytes())
        agents = tuple(_agent(a, summary["measures"], laws, draws) for a in summary["agents"])
        return Analysis(summary["testbed"], summary["mode"], summary["rounds"], agents)
    except Exception as error:  # of files that others wrote anything may be wrong
        raise FeelgoodError(
            f"the analysis in {folder} is damaged ({error}): run 'feelgood posterior' again."
        ) from error


def _agent(
    summary: dict[str, Any], measures: list[dict[str, Any]], laws: list[dict[str, Any]], draws: Any
) -> AgentPosterior:
    def ours(row: dict[str, Any]) -> bool:
        return bool(row["agent"] == summary["agent"] and row["seed"] == summary["seed"])

    own_laws = {}
    for row in filter(ours, laws):
        shape = (row["blocks"], row["dim"])
        covariance = np.reshape(row["covariance"], (*shape, row["dim"]))
        own_laws[row["law"]] = Law(mean=np.reshape(row["mean"], shape), covariance=covariance)
    mine = draws.filter(
        pc.and_(
            pc.equal(draws["agent"], summary["agent"]),
            pc.equal(draws["seed"], summary["seed"]),
        )
    )
    thetas = mine.column("theta").combine_chunks().flatten().to_numpy(zero_copy_only=False)
    comparisons = {}
    for against, told in summary["verdicts"].items():
        rows = tuple(
            MeasureRow(
                m["measure"], m["arm"], *(_number(m[k]) for k in ("value", "expected", "error"))
            )
            for m in filter(ours, measures)
            if m["against"] == against
        )
        verdict = PosteriorVerdict(
            told["status"], told["level"], told["tests"], None, told["sentence"]
        )
        comparisons[against] = PosteriorComparison(rows=rows, verdict=verdict)
    return AgentPosterior(
        agent=summary["agent"],
        seed=summary["seed"],
        settings=summary["settings"],
        plays=np.array(summary["plays"]),
        draws=thetas.astype(np.float64).reshape(summary["chains"], -1, *shape),
        laws=own_laws,
        comparisons=comparisons,
        seconds=summary["seconds"],
    )


def _number(value: float | None) -> float:
    return np.nan if value is None else value
