"""A run is a small results store: the same folder that a study writes, with one run in it.

manifest.jsonl, cells/    the store, as `feelgood.studies.store` describes it
results.json              the same in one file for other programs, in the order of the run
results.parquet           one row per agent, setting and seed
"""

import dataclasses
import json
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from feelgood.api.run_folder import RESULTS_FILE, TABLE_FILE, prepare_folder, unwritable
from feelgood.core.arguments import parse_path
from feelgood.core.atomic import remove_leftovers_of_the_dead
from feelgood.core.errors import FeelgoodError, shown
from feelgood.engine.columns import to_arrow, to_tree
from feelgood.engine.results import AgentResult


def save_results(
    results: Sequence[AgentResult],
    folder: str | Path | Any,
    *,
    interrupted: bool = False,
    force: bool = False,
) -> Path:
    """Write a run's results as a store; see `RunResult.save`. Returns the folder.

    Everything is written beside the old results first, so that an error leaves those as they are.
    A process that is killed leaves the old results or the new ones.
    """
    from feelgood.core.arrow import pq
    from feelgood.studies.folder_parts import replacing_parts
    from feelgood.studies.store import Store

    if not results:
        raise FeelgoodError("there are no results to save: run at least one agent.")
    place = prepare_folder(folder, force)
    try:
        with replacing_parts(place, lambda: prepare_folder(place, force)) as fresh:
            for name in (RESULTS_FILE, TABLE_FILE):  # the command tries whether it may write these
                remove_leftovers_of_the_dead(place / name)
            store = Store(fresh)
            for one in results:
                for cell, part in _cells(one):
                    store.put(cell, part)
            text = json.dumps(to_tree(results, interrupted), indent=1, allow_nan=False)
            (fresh / RESULTS_FILE).write_text(text + "\n")
            pq.write_table(to_arrow(results), fresh / TABLE_FILE)
            shutil.rmtree(store.work_folder)
    except OSError as error:
        raise unwritable(place, error) from None
    return place


def _cells(result: AgentResult) -> Iterator[Any]:
    """A result cut into a study's cells, blocks of seeds, each with its part of the result."""
    from feelgood.studies.execute import provenance
    from feelgood.studies.planning import Cell, seed_blocks

    where = {seed: i for i, seed in enumerate(result.seeds)}
    every = None if result.posterior is None else int(result.posterior.rounds[0])
    for block in seed_blocks(result.seeds):
        rows = np.array([where[seed] for seed in block])
        share = len(block) / len(result.seeds)
        part = dataclasses.replace(
            result.at_places(rows),
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


def load_results(folder: str | Path | Any) -> tuple[tuple[AgentResult, ...], bool]:
    """The results in a folder, and whether their run was interrupted; see `feelgood.load`."""
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
    return tuple(found), interrupted


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
