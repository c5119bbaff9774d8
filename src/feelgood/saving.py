"""A run is a small results store: the same folder that a study writes, with one run in it.

manifest.jsonl, cells/    the store, as `feelgood.studies.store` describes it
results.json              the same in one file for other programs, in the order of the run
results.parquet           one row per agent, setting and seed
"""

import dataclasses
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from feelgood.errors import FeelgoodError, shown

if TYPE_CHECKING:
    from feelgood.results import AgentResult, RunResult

RESULTS_FILE, TABLE_FILE = "results.json", "results.parquet"
#: What a folder with results has.
_PARTS = ("cells", TABLE_FILE, RESULTS_FILE, "manifest.jsonl")


def prepare_folder(folder: str | Path | Any, force: bool = False) -> Path:
    """Refuse a folder into which a run must not be saved; nothing is changed."""
    from feelgood.arguments import parse_path

    place = parse_path(folder, "folder")
    try:
        if place.exists() and not place.is_dir():
            raise FeelgoodError(f"{place} is not a folder: choose another place.")
        there = [name for name in _PARTS if (place / name).exists()]
    except OSError as error:
        raise _unwritable(place, error) from None
    if there and not force:
        raise FeelgoodError(
            f"{place / there[-1]} exists already: choose another place, or force it."
        )
    if "manifest.jsonl" in there and RESULTS_FILE not in there:
        raise FeelgoodError(f"{place} is the store of a study: choose another folder.")
    return place


def _unwritable(place: Path, error: OSError) -> FeelgoodError:
    return FeelgoodError(
        f"cannot write to {shown(str(place))} ({error.strerror or error}): choose another folder."
    )


def save(result: "RunResult | Any", folder: str | Path | Any, *, force: bool = False) -> Path:
    """Write a run's results as a store; see `RunResult.save`. Returns the folder.

    Everything is written beside the old results first, so that an error leaves those as they are,
    and a process that is killed leaves the old results or the new ones.
    """
    import pyarrow.parquet as pq

    from feelgood.results import RunResult
    from feelgood.studies import atomic
    from feelgood.studies.replacing import replacing
    from feelgood.studies.store import Store

    if not isinstance(result, RunResult):
        raise FeelgoodError(f"{shown(result)} is no result of a run: give a RunResult.")
    if not result.results:
        raise FeelgoodError("there are no results to save: run at least one agent.")
    place = prepare_folder(folder, force)
    try:
        with replacing(place, lambda: prepare_folder(place, force)) as fresh:
            for name in (RESULTS_FILE, TABLE_FILE):  # the command tries whether it may write these
                atomic.remove_of_the_dead(place, name)
            store = Store(fresh)
            for one in result.results:
                for cell, part in _cells(one):
                    store.put(cell, part)
            text = json.dumps(result.to_json(), indent=1, allow_nan=False)
            (fresh / RESULTS_FILE).write_text(text + "\n")
            pq.write_table(result.to_arrow(), fresh / TABLE_FILE)
            shutil.rmtree(store.work_folder)
    except OSError as error:
        raise _unwritable(place, error) from None
    return place


def _cells(result: "AgentResult") -> Iterator[Any]:
    """A result cut into a study's cells, blocks of seeds, each with its part of the result."""
    import numpy as np

    from feelgood.studies.execute import provenance
    from feelgood.studies.spec import Cell, seed_blocks

    where = {seed: i for i, seed in enumerate(result.seeds)}
    every = None if result.posterior is None else int(result.posterior.rounds[0])
    for block in seed_blocks(result.seeds):
        rows = np.array([where[seed] for seed in block])
        share = len(block) / len(result.seeds)
        part = dataclasses.replace(
            result,
            seeds=block,
            **{name: getattr(result, name)[rows] for name in _BY_SEED},
            health={name: values[rows] for name, values in result.health.items()},
            posterior=result.posterior and result.posterior.seeds(rows),
            compile_s=result.compile_s * share,
            run_s=result.run_s * share,
            provenance=result.provenance or provenance(),
        )
        cell = Cell(
            testbed=result.testbed,
            testbed_settings=result.testbed_settings,
            agent=result.agent,
            settings=result.settings,
            rounds=result.rounds,
            seeds=block,
            posterior_every=every,
        )
        yield cell, part


_BY_SEED = (
    *("final_regret", "simple_regret", "best_arm_rate", "arm_counts", "curve", "ess"),
    "diverged_at",
)


def load(folder: str | Path | Any) -> "RunResult":
    """The results in a folder that `RunResult.save`, `feelgood run --out` or a study wrote.

    The numbers are those of the run, bit for bit; seeds are in ascending order.

    **Example:**

    >>> import feelgood, tempfile
    >>> folder = tempfile.mkdtemp() + "/mine"
    >>> _ = feelgood.run("linear-20", "uniform", rounds=50, seeds=2).save(folder)
    >>> [r.agent for r in feelgood.load(folder)]
    ['uniform']
    """
    from feelgood.arguments import parse_path
    from feelgood.results import RunResult
    from feelgood.studies.store import Store

    place = parse_path(folder, "folder")
    try:
        if not place.is_dir():
            raise FeelgoodError(
                f"{shown(str(place))} is not a folder: give one that a run or a study wrote."
            )
        found = Store(place, create=False).results()
    except OSError as error:
        raise FeelgoodError(
            f"cannot read {shown(str(place))} ({error.strerror or error}): give a folder that a "
            "run or a study wrote."
        ) from None
    if not found:
        raise FeelgoodError(f"the store {place} has no finished results: run its study first.")
    order, interrupted = _order(place)
    last = len(order)
    found.sort(key=lambda r: order.get(_key(r.agent, r.settings), last))
    return RunResult(tuple(found), interrupted=interrupted)


def _key(agent: Any, settings: Any) -> str:
    return json.dumps([agent, dict(settings)], sort_keys=True)


def _order(place: Path) -> tuple[dict[str, int], bool]:
    """Where each result stood in the run, and whether the run was interrupted, if that is known."""
    try:
        tree = json.loads((place / RESULTS_FILE).read_bytes())
        order = {_key(r["agent"], r["settings"]): i for i, r in enumerate(tree["results"])}
        return order, bool(tree.get("interrupted", False))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}, False
