"""The Ray engine: a cluster of two nodes, one of which dies in the middle."""

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from feelgood.core.errors import FeelgoodError
from feelgood.studies import Store, Study, plan_cells, run_study
from feelgood.studies.batches import CellBatch
from feelgood.studies.cells import PROVENANCE
from feelgood.studies.engines.ray import RayEngine

pytest.importorskip("ray", reason="Ray is an extra: pip install 'feelgood[ray]'")

ROUNDS, SEEDS, EVERY = 3000, 4, 1000

#: In a process of its own: Ray keeps threads, sockets and files open to the end.
DRIVER = f"""
import sys, threading
from ray.cluster_utils import Cluster
from feelgood.studies import (Study, Watcher, plan_cells, run_study)

head = {{"num_cpus": 1, "include_dashboard": False}}
cluster = Cluster(initialize_head=True, head_node_args=head)
doomed = cluster.add_node(num_cpus=1)
cluster.wait_for_nodes()
cells = []
for steps in (5, 6, 7, 8):
    settings = {{"steps": steps}}
    cells += plan_cells("linear-20", "hmcts", settings=settings, rounds={ROUNDS}, seeds={SEEDS},
        posterior_every={EVERY})
started, lost = [], []

def begin(batch):
    started.append(batch)
    if len(started) == 2:  # both nodes have work: the second dies a moment later
        threading.Timer(4.0, lambda: cluster.remove_node(doomed, allow_graceful=False)).start()

watcher = Watcher(started=begin, lost=lambda batch, reason: lost.append(reason))
outcome = run_study(
    Study("ray", tuple(cells)), sys.argv[1], engine="ray", address=cluster.address,
    checkpoint_every=0.5, watcher=watcher,
)
print("outcome", outcome.done, outcome.missing, outcome.failures, flush=True)
print("lost", len(lost), lost, flush=True)
cluster.shutdown()
"""


@pytest.mark.slow
def test_a_node_that_dies_has_its_batch_run_elsewhere(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, str(tmp_path / "ray")],
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )
    assert "outcome 4 0 {}" in done.stdout, done.stdout + done.stderr
    assert "lost 0" not in done.stdout, "the node died before or after its work"

    cells = []
    for steps in (5, 6, 7, 8):
        cells += plan_cells(
            "linear-20",
            "hmcts",
            settings={"steps": steps},
            rounds=ROUNDS,
            seeds=SEEDS,
            posterior_every=EVERY,
        )
    local = Store(tmp_path / "local")
    run_study(Study("local", tuple(cells)), local)
    ray = Store(tmp_path / "ray", create=False)
    for cell in cells:
        one, other = (s.table([cell]).drop_columns(list(PROVENANCE)) for s in (local, ray))
        assert one.num_rows == SEEDS
        assert one.equals(other)


PLUGIN = """
from feelgood.agents import Uniform
from feelgood.core.policy import AGENTS

@AGENTS.register("mute")
class Mute(Uniform):
    '''Fails without a word.'''

    def init(self, key, spec, shape=()):
        raise RuntimeError
"""
#: A variable names a cluster that is gone; a study without an address must not look for it.
ALONE = """
import json, sys
from feelgood.studies import Watcher, read_study, run_study

def look(batch):
    import ray
    nodes.extend(node["NodeManagerAddress"] for node in ray.nodes())

given = read_study(sys.argv[1])
nodes = []
watcher = Watcher(started=look)
outcome = run_study(given.study, given.store, engine="ray", workers=1, watcher=watcher)
print(json.dumps([outcome.done, outcome.failures, sorted(set(nodes))]))
"""


@pytest.mark.slow
def test_alone_it_starts_its_own_cluster_on_this_machine(tmp_path: Path) -> None:
    (tmp_path / "mute.py").write_text(PLUGIN)
    file = tmp_path / "s.toml"
    file.write_text(
        'plugins = ["mute.py"]\nrounds = 20\nseeds = 1\ntestbeds = ["linear-20"]\n'
        'agents = ["mute", "uniform"]\n'
    )
    done = subprocess.run(
        [sys.executable, "-c", ALONE, str(file)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env={**os.environ, "RAY_ADDRESS": "192.0.2.77:6379"},
    )
    assert done.returncode == 0, done.stderr
    finished, failures, nodes = json.loads(done.stdout.splitlines()[-1])
    assert finished == 1
    assert failures == {"mute on linear-20, 1 chains": "RuntimeError"}
    assert nodes == ["127.0.0.1"]


def test_a_cluster_that_does_not_start_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def late(**options: object) -> None:
        raise Exception("The current node timed out\nduring startup.")

    Store(tmp_path / "s")
    engine = RayEngine(checkpoint_every=1.0)
    monkeypatch.setattr(engine._ray, "init", late)
    with pytest.raises(FeelgoodError, match=r"could not be started .*timed out during startup"):
        engine.start(tmp_path / "s")


def test_a_full_disk_at_the_token_gets_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (cell,) = plan_cells("linear-20", "uniform", rounds=20, seeds=1)
    engine = object.__new__(RayEngine)
    engine._store, engine._token = Store(tmp_path / "s"), "driver-1"

    def full(*words: object, **options: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "touch", full)
    with pytest.raises(FeelgoodError, match=r"cannot write .*driver-1 .*free some space"):
        engine.submit(CellBatch((cell,)))
