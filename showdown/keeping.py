"""Results in small: one Parquet file a testbed, one row a seed, curves thinned to a few rounds.

Regrets are kept in full; curves and diagnostics to a few significant digits. What comes back is an
`AgentResult`, so that everything that works on the results of a run works on these.
"""

import collections
import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from feelgood.core.errors import FeelgoodError
from feelgood.core.parquet import read_parquet
from feelgood.engine.results import AgentResult, PosteriorAlong
from feelgood.report.chain_costs import chain_cost
from feelgood.report.matching import run_key

#: Rounds of a curve that are kept, and significant digits of curves and of diagnostics.
POINTS, CURVE_DIGITS, HEALTH_DIGITS = 30, 4, 3
#: Diagnostics that the pages use.
MEASURES = ("acceptance", "gradients")
#: Where and with what a seed was run.
ORIGIN = ("device", "feelgood", "jax", "commit")

_NUMBERS = pa.list_(pa.float32())
SCHEMA = pa.schema(
    [
        ("testbed", pa.string()),
        ("testbed_settings", pa.string()),
        ("agent", pa.string()),
        ("settings", pa.string()),
        ("rounds", pa.int64()),
        ("seed", pa.int64()),
        ("final_regret", pa.float64()),
        ("simple_regret", pa.float64()),
        ("best_arm_rate", pa.float64()),
        ("diverged_at", pa.int64()),
        ("ess", pa.float32()),
        ("curve_rounds", pa.list_(pa.int64())),
        ("curve_regret", _NUMBERS),
        ("health", pa.list_(pa.struct([("measure", pa.string()), ("values", _NUMBERS)]))),
        ("posterior_rounds", pa.list_(pa.int64())),
        (
            "posterior",
            pa.list_(
                pa.struct([("measure", pa.string()), ("values", _NUMBERS), ("expected", _NUMBERS)])
            ),
        ),
        ("compile_s", pa.float64()),
        ("run_s", pa.float64()),
        *((name, pa.string()) for name in ORIGIN),
        ("studies", pa.list_(pa.string())),
        ("numbers", pa.list_(pa.int32())),
    ]
)
Row = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Kept:
    """A result with the studies that ask for it and the published numbers it stands beside.

    `numbers` are positions in `feelgood.paper.published.all_published()`, from 0.
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
    """One row a seed."""
    r = kept.result
    picked = _picked(len(r.curve_rounds))
    health = {m: _thinned(r.health[m], r.curve_rounds, picked) for m in MEASURES if m in r.health}
    common = {
        "testbed": r.testbed,
        "testbed_settings": json.dumps(dict(r.testbed_settings), sort_keys=True),
        "agent": r.agent,
        "settings": json.dumps(dict(r.settings), sort_keys=True),
        "rounds": r.rounds,
        "curve_rounds": r.curve_rounds[picked].tolist(),
        # Measuring takes time that is not the agent's.
        "compile_s": r.compile_s / len(r.seeds) if r.posterior is None else None,
        "run_s": chain_cost(r).seconds if r.posterior is None else None,
        "studies": list(kept.studies),
        "numbers": list(kept.numbers),
        **{name: r.provenance.get(name) for name in ORIGIN},
    }
    return [
        common
        | {
            "seed": seed,
            "final_regret": _number(r.final_regret[i]),
            "simple_regret": _number(r.simple_regret[i]),
            "best_arm_rate": _number(r.best_arm_rate[i]),
            "diverged_at": int(r.diverged_at[i]) if r.diverged_at[i] >= 0 else None,
            "ess": _number(r.ess[i]),
            "curve_regret": _few(r.curve[i, picked], CURVE_DIGITS),
            "health": [
                {"measure": name, "values": _few(values[i], HEALTH_DIGITS)}
                for name, values in health.items()
            ],
            **_posterior(r.posterior, i),
        }
        for i, seed in enumerate(r.seeds)
    ]


def _posterior(along: PosteriorAlong | None, i: int) -> Row:
    if along is None:
        return {"posterior_rounds": None, "posterior": None}
    measures = [
        {
            "measure": name,
            "values": _few(values[i], CURVE_DIGITS),
            "expected": _few(along.expected[name][i], CURVE_DIGITS),
        }
        for name, values in along.value.items()
    ]
    return {"posterior_rounds": along.rounds.tolist(), "posterior": measures}


def _picked(count: int) -> np.ndarray:
    """At most `POINTS` of the indices 0 … count − 1, evenly, the first and the last among them."""
    return np.unique(np.rint(np.linspace(0, count - 1, min(count, POINTS))).astype(np.int64))


def _thinned(values: np.ndarray, rounds: np.ndarray, picked: np.ndarray) -> np.ndarray:
    """Means between the picked rounds, from means between all of them."""
    widths = np.diff(rounds, prepend=0)
    starts = np.concatenate([[0], picked[:-1] + 1])
    sums = np.add.reduceat(values * widths, starts, axis=1)
    return sums / np.add.reduceat(widths, starts)


def _few(values: np.ndarray, digits: int) -> list[float | None]:
    """Few significant digits; NaN becomes null."""
    return [float(f"{v:.{digits}g}") if np.isfinite(v) else None for v in values]


def _number(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None


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
        table = pa.Table.from_pylist(own, schema=SCHEMA)
        pq.write_table(table, path, compression="zstd", compression_level=19)
        written.append(path)
    return written


def _order(row: Row) -> tuple[Any, ...]:
    names = ("testbed", "testbed_settings", "agent", "settings", "rounds", "seed")
    return tuple(row[name] for name in names)


# Reading -------------------------------------------------------------------------------------


def read_rows(folder: Path) -> list[Row]:
    """All rows of the folder."""
    rows: list[Row] = []
    for file in sorted(folder.glob("*.parquet")):
        table = read_parquet(file.read_bytes())
        absent = [name for name in SCHEMA.names if name not in table.column_names]
        if absent:
            raise FeelgoodError(
                f"{file} has no column '{absent[0]}', so that it is no file of these results: "
                "move it elsewhere."
            )
        rows += table.to_pylist()
    return rows


def key_of_row(row: Mapping[str, Any]) -> str:
    """`run_key` of the result that the row belongs to."""
    settings, testbed_settings = json.loads(row["settings"]), json.loads(row["testbed_settings"])
    return json.dumps(
        [row["testbed"], testbed_settings, row["agent"], settings, row["rounds"]], sort_keys=True
    )


def read(folder: Path) -> list[Kept]:
    """All results of the folder."""
    groups: dict[str, list[Row]] = {}
    for row in read_rows(folder):
        groups.setdefault(key_of_row(row), []).append(row)
    return [from_rows(rows) for rows in groups.values()]


def from_rows(rows: Sequence[Row]) -> Kept:
    """The result that `to_rows` wrote, or several parts of it with different seeds."""
    rows = sorted(rows, key=lambda row: row["seed"])
    first = rows[0]
    measures = [entry["measure"] for entry in first["health"]]

    def column(name: str) -> np.ndarray:
        return _array([row[name] for row in rows])

    result = AgentResult(
        agent=first["agent"],
        testbed=first["testbed"],
        settings=json.loads(first["settings"]),
        testbed_settings=json.loads(first["testbed_settings"]),
        rounds=first["rounds"],
        seeds=tuple(row["seed"] for row in rows),
        final_regret=column("final_regret"),
        simple_regret=column("simple_regret"),
        best_arm_rate=column("best_arm_rate"),
        arm_counts=np.zeros((len(rows), 0), np.int64),
        curve_rounds=np.array(first["curve_rounds"], np.int64),
        curve=np.stack([_array(row["curve_regret"]) for row in rows]),
        health={
            name: np.stack([_array(row["health"][k]["values"]) for row in rows])
            for k, name in enumerate(measures)
        },
        ess=column("ess"),
        diverged_at=np.array(
            [-1 if row["diverged_at"] is None else row["diverged_at"] for row in rows], np.int64
        ),
        compile_s=float(column("compile_s").sum()),
        run_s=float(column("run_s").sum()),
        posterior=_read_posterior(rows),
        provenance={name: _all_of(row[name] for row in rows) for name in ORIGIN},
    )
    return Kept(result, tuple(first["studies"]), tuple(first["numbers"]))


def _read_posterior(rows: Sequence[Row]) -> PosteriorAlong | None:
    if any(row["posterior"] is None for row in rows):
        return None
    measures = [entry["measure"] for entry in rows[0]["posterior"]]

    def part(name: str) -> dict[str, np.ndarray]:
        return {
            measure: np.stack([_array(row["posterior"][k][name]) for row in rows])
            for k, measure in enumerate(measures)
        }

    rounds = np.array(rows[0]["posterior_rounds"], np.int64)
    return PosteriorAlong(rounds=rounds, value=part("values"), expected=part("expected"), error={})


def _array(values: Sequence[float | None]) -> np.ndarray:
    return np.array([np.nan if v is None else v for v in values], np.float64)


def _all_of(values: Iterable[str | None]) -> str:
    """The different values, the most frequent first."""
    counted = collections.Counter(value for value in values if value)
    return ", ".join(value for value, _ in counted.most_common())
