"""What `feelgood challenge` compares with: final regrets of the shipped results, per seed.

The agents out of the box, on data sets with the preset `beta-1`, and those with the paper's
settings; sweeps are left out. The file lies in the package, so that an installed copy has it.
"""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from feelgood.api.challenges import FILE
from feelgood.core.testbed import TESTBEDS
from feelgood.engine.building import resolve_variants
from showdown.keeping import Kept

#: The studies whose agents are baselines, by whose settings they have.
PRESETS = {
    "default": ("question-default",),
    "beta-1": ("question-default-data",),
    "paper": ("table-main", "table-main-logistic", "table-main-logistic-bonus", "data-*"),
}
SCHEMA = pa.schema(
    [
        ("testbed", pa.string()),
        ("testbed_settings", pa.string()),
        ("agent", pa.string()),
        ("settings", pa.string()),
        ("preset", pa.string()),
        ("rounds", pa.int64()),
        ("seeds", pa.list_(pa.int64())),
        ("final_regret", pa.list_(pa.float64())),
    ]
)


def table(kept: Sequence[Kept]) -> pa.Table:
    """One row per agent, testbed and setting; the presets that have it are joined by commas."""
    rows = []
    for k in kept:
        presets = [
            preset
            for preset, studies in PRESETS.items()
            if any(Path(own).match(study) for own in k.studies for study in studies)
            and (preset != "paper" or _is_main(k))
        ]
        if presets:
            rows.append(_row(k, ", ".join(presets)))
    rows.sort(key=lambda row: json.dumps(row, sort_keys=True))
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def _is_main(kept: Kept) -> bool:
    """Whether its settings are those of the preset `paper`.

    The main table also has a column at another temperature; the data sets have no other.
    """
    r = kept.result
    if any(study.startswith("data-") for study in kept.studies):
        return True
    spec = TESTBEDS[r.testbed].build(r.testbed_settings).spec
    (own,) = resolve_variants(r.agent, {}, "paper", r.testbed, spec, r.rounds)
    return dict(own) == dict(r.settings)


def _row(kept: Kept, preset: str) -> dict[str, object]:
    r = kept.result
    return {
        "testbed": r.testbed,
        "testbed_settings": json.dumps(dict(r.testbed_settings), sort_keys=True),
        "agent": r.agent,
        "settings": json.dumps(dict(r.settings), sort_keys=True),
        "preset": preset,
        "rounds": r.rounds,
        "seeds": list(r.seeds),
        "final_regret": [float(v) if np.isfinite(v) else None for v in r.final_regret],
    }


def write(kept: Sequence[Kept], target: Path = FILE) -> Path:
    """Write the package's file."""
    pq.write_table(table(kept), target, compression="zstd", compression_level=19)
    return target


def stale(kept: Sequence[Kept], target: Path = FILE) -> list[str]:
    """The file, if it is not what the results give."""
    return [] if pq.read_table(target).equals(table(kept)) else [str(target)]
