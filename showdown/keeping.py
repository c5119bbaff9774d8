"""Results in small: one Parquet file per testbed, one row per seed, curves at a few rounds.

Regrets are kept in full; curves and diagnostics to a few significant digits. What comes back is an
`AgentResult`, so that everything that works on the results of a run works on these.
"""

import collections
import dataclasses
import functools
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from feelgood.core.errors import FeelgoodError
from feelgood.core.parquet import read_parquet
from feelgood.engine import schema
from feelgood.engine.columns import SHOWDOWN, arrow_columns, measured_fields, measured_rows
from feelgood.engine.results import (
    AgentResult,
    has_field,
    in_fields,
    key_of,
    run_key,
)
from feelgood.engine.schema import Axes
from feelgood.report.chain_costs import chain_cost
from showdown.later_settings import with_later_settings

#: Rounds of a curve that are kept, and significant digits of curves and of diagnostics.
POINTS, CURVE_DIGITS, HEALTH_DIGITS = 30, 4, 3
#: Diagnostics that the pages use.
MEASURES = ("acceptance", "gradients")
#: Where and with what a seed was run.
ORIGIN = ("device", "feelgood", "jax", "commit")

#: Which run a row belongs to.
_RUN = ("testbed", "testbed_settings", "agent", "settings")
Row = dict[str, Any]


def file_schema() -> pa.Schema:
    """The columns of a file."""
    return pa.schema(
        [
            *((name, pa.string()) for name in _RUN),
            ("rounds", pa.int64()),
            ("seed", pa.int64()),
            *arrow_columns(SHOWDOWN),
            ("compile_s", pa.float64()),
            ("run_s", pa.float64()),
            *((name, pa.string()) for name in ORIGIN),
            ("studies", pa.list_(pa.string())),
            ("numbers", pa.list_(pa.int32())),
        ]
    )


@dataclasses.dataclass(frozen=True)
class Kept:
    """A result with the studies that ask for it and the published numbers it stands beside.

    `numbers` are positions in `feelgood.paper.published_numbers.all_published()`, from 0.
    """

    result: AgentResult
    studies: tuple[str, ...] = ()
    numbers: tuple[int, ...] = ()

    @property
    def key(self) -> str:
        """What was run, apart from its seeds."""
        return run_key(self.result)


# Writing -------------------------------------------------------------------------------------


def to_rows(kept: Kept) -> list[Row]:
    """One row per seed."""
    r = kept.result
    common = {
        "testbed": r.testbed,
        "testbed_settings": json.dumps(dict(r.testbed_settings), sort_keys=True),
        "agent": r.agent,
        "settings": json.dumps(dict(r.settings), sort_keys=True),
        "rounds": r.rounds,
        # Measuring takes time that is not the agent's.
        "compile_s": r.compile_s / len(r.seeds) if r.posterior is None else None,
        "run_s": chain_cost(r).seconds if r.posterior is None else None,
        "studies": list(kept.studies),
        "numbers": list(kept.numbers),
        **{name: r.provenance.get(name) for name in ORIGIN},
    }
    measured = zip(r.seeds, measured_rows(in_small(r), SHOWDOWN), strict=True)
    return [common | {"seed": seed} | row for seed, row in measured]


def in_small(result: AgentResult) -> AgentResult:
    """The same with fewer points and fewer digits of what goes along the run."""
    rounds, picked = result.curve_rounds, _picked(len(result.curve_rounds))
    values: dict[str, Any] = {}
    for quantity in schema.QUANTITIES:
        every = values[quantity.name] = result.values_of(quantity)
        if quantity.axes is Axes.POINT:
            values[quantity.name] = _few(every[:, picked], CURVE_DIGITS)
        if quantity.axes is Axes.DIAGNOSTIC:
            values[quantity.name] = {
                name: _few(_thinned(every[name], rounds, picked), HEALTH_DIGITS)
                for name in MEASURES
                if name in every
            }
    posterior = result.posterior and dataclasses.replace(
        result.posterior,
        value={k: _few(v, CURVE_DIGITS) for k, v in result.posterior.value.items()},
        expected={k: _few(v, CURVE_DIGITS) for k, v in result.posterior.expected.items()},
    )
    return dataclasses.replace(
        result, **in_fields(values), curve_rounds=rounds[picked], posterior=posterior
    )


def _picked(count: int) -> np.ndarray:
    """At most `POINTS` of the indices 0 … count − 1, evenly, the first and the last among them."""
    return np.unique(np.rint(np.linspace(0, count - 1, min(count, POINTS))).astype(np.int64))


def _thinned(values: np.ndarray, rounds: np.ndarray, picked: np.ndarray) -> np.ndarray:
    """Means between the picked rounds, from means between all of them."""
    widths = np.diff(rounds, prepend=0)
    starts = np.concatenate([[0], picked[:-1] + 1])
    sums = np.add.reduceat(values * widths, starts, axis=1)
    return sums / np.add.reduceat(widths, starts)


def _few(values: np.ndarray, digits: int) -> np.ndarray:
    """The same to a few significant digits."""
    few = [float(f"{v:.{digits}g}") for v in values.reshape(-1)]
    return np.array(few, np.float64).reshape(values.shape)


def write(folder: Path, rows: Iterable[Row]) -> list[Path]:
    """Write the files of all testbeds; files of others are removed."""
    by_testbed: dict[str, list[Row]] = {}
    for row in sorted(rows, key=_order):
        by_testbed.setdefault(row["testbed"], []).append(row)
    folder.mkdir(parents=True, exist_ok=True)
    for file in folder.glob("*.parquet"):
        if file.stem not in by_testbed:
            file.unlink()
    written = []
    for testbed, own in by_testbed.items():
        path = folder / f"{testbed}.parquet"
        table = pa.Table.from_pylist(own, schema=file_schema())
        pq.write_table(table, path, compression="zstd", compression_level=19)
        written.append(path)
    return written


def _order(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in (*_RUN, "rounds", "seed"))


# Reading -------------------------------------------------------------------------------------


def read_rows(folder: Path, testbed: str = "*") -> list[Row]:
    """All rows of the folder, or of one testbed's file, with the settings that came later."""
    rows: list[Row] = []
    # Files of earlier versions lack numbers that came later.
    later = {quantity.column for quantity in schema.QUANTITIES if not has_field(quantity)}
    required = [name for name in file_schema().names if name not in later]
    for file in sorted(folder.glob(f"{testbed}.parquet")):
        table = read_parquet(file.read_bytes())
        absent = [name for name in required if name not in table.column_names]
        if absent:
            raise FeelgoodError(
                f"{file} has no column '{absent[0]}', so that it is no file of these results: "
                "move it elsewhere."
            )
        rows += table.to_pylist()
    for row in rows:
        row["settings"] = with_later_settings(row["testbed"], row["agent"], row["settings"])
    return rows


def key_of_row(row: Mapping[str, Any]) -> str:
    """`run_key` of the result that the row belongs to."""
    return _key(*(row[name] for name in (*_RUN, "rounds")))


@functools.lru_cache(maxsize=4096)
def _key(testbed: str, testbed_settings: str, agent: str, settings: str, rounds: int) -> str:
    """Hundreds of rows share one."""
    return key_of(testbed, json.loads(testbed_settings), agent, json.loads(settings), rounds)


def read(folder: Path, testbed: str = "*") -> list[Kept]:
    """All results of the folder, or of one testbed."""
    groups: dict[str, list[Row]] = {}
    for row in read_rows(folder, testbed):
        groups.setdefault(key_of_row(row), []).append(row)
    return [from_rows(rows) for rows in groups.values()]


def from_rows(rows: Sequence[Row]) -> Kept:
    """The result that `to_rows` wrote, or several parts of it with different seeds."""
    rows = sorted(rows, key=lambda row: row["seed"])
    first = rows[0]
    result = AgentResult(
        agent=first["agent"],
        testbed=first["testbed"],
        settings=json.loads(first["settings"]),
        testbed_settings=json.loads(first["testbed_settings"]),
        rounds=first["rounds"],
        seeds=tuple(row["seed"] for row in rows),
        **measured_fields(rows, SHOWDOWN),
        compile_s=_sum(row["compile_s"] for row in rows),
        run_s=_sum(row["run_s"] for row in rows),
        provenance={name: _all_of(row[name] for row in rows) for name in ORIGIN},
    )
    return Kept(result, tuple(first["studies"]), tuple(first["numbers"]))


def _sum(seconds: Iterable[float | None]) -> float:
    """NaN where one is not known."""
    return float(np.array([np.nan if s is None else s for s in seconds]).sum())


def _all_of(values: Iterable[str | None]) -> str:
    """The different values, the most frequent first."""
    counted = collections.Counter(value for value in values if value)
    return ", ".join(value for value, _ in counted.most_common())
