"""Trackers get the numbers of a result.

Where MLflow or Weights & Biases is not installed, something stands in for it that notes the calls.
"""

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import feelgood
from feelgood.adapters.tracking import to_mlflow, to_wandb, track


@pytest.fixture(scope="module")
def result() -> feelgood.RunResult:
    settings = {"linucb": {"alpha": [0.1, 1.0]}}
    return feelgood.run("linear-20", "linucb", rounds=60, seeds=2, settings=settings)


def test_a_function_gets_every_setting(result: feelgood.RunResult) -> None:
    got: list[Any] = []
    track(result, lambda *parts: got.append(parts))
    assert [settings["agent.alpha"] for _, settings, _, _ in got] == [0.1, 1.0]
    for (name, settings, curve, numbers), own in zip(got, result, strict=True):
        assert name == "linucb on linear-20"
        assert settings["rounds"] == 60
        assert numbers["regret_mean"] == own.regret.mean == pytest.approx(curve[-1][1])
        assert curve[-1][0] == 60


class Calls(ModuleType):
    """A package that writes down what it is asked."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.calls: list[tuple[str, Any]] = []
        self.summary: dict[str, float] = {}

    def note(self, what: str) -> Any:
        return lambda *parts, **named: self.calls.append((what, parts or named))

    def __enter__(self) -> "Calls":
        return self

    def __exit__(self, *_: object) -> None:
        self.calls.append(("end", ()))


def test_mlflow_gets_one_run_per_setting(
    result: feelgood.RunResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake: Any = Calls("mlflow")
    fake.start_run = lambda **named: (fake.note("start")(**named), fake)[1]
    fake.active_run = lambda: None
    for name in ("log_params", "log_metric", "log_metrics"):
        setattr(fake, name, fake.note(name))
    monkeypatch.setitem(sys.modules, "mlflow", fake)
    track(result, to_mlflow())
    assert [what for what, _ in fake.calls].count("start") == 2
    assert [what for what, _ in fake.calls].count("end") == 2


def test_weights_and_biases_get_the_curve_and_the_summary(
    result: feelgood.RunResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    run: Any = Calls("run")
    run.log = run.note("log")
    started: list[Any] = []
    fake: Any = SimpleNamespace(init=lambda **named: (started.append(named), run)[1])
    monkeypatch.setitem(sys.modules, "wandb", fake)
    track(result, to_wandb(project="bandits"))
    assert [s["project"] for s in started] == ["bandits"] * 2
    assert "regret_mean" in run.summary


@pytest.mark.parametrize("tracker", [to_mlflow, to_wandb])
def test_a_tracker_that_is_not_installed_gets_one_sentence(
    tracker: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = tracker.__name__.removeprefix("to_")
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(feelgood.FeelgoodError, match=rf"pip install 'feelgood\[{name}\]'"):
        tracker()


# The real packages, where they are installed. They warn of their own next versions.


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_real_mlflow(
    result: feelgood.RunResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # mlflow-skinny has no database
    mlflow = pytest.importorskip("mlflow", reason="MLflow is not installed")
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    track(result, to_mlflow())
    client = mlflow.MlflowClient()
    runs = client.search_runs([client.get_experiment_by_name("Default").experiment_id])
    for run in runs:
        own = result[f"linucb alpha={float(run.data.params['agent.alpha']):g}"]
        assert run.data.metrics["regret_mean"] == own.regret.mean
        history = client.get_metric_history(run.info.run_id, "regret")
        assert [(m.step, m.value) for m in history][-1] == (60, own.curve_mean()[-1])
    assert len(runs) == 2


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_real_wandb(
    result: feelgood.RunResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a network and an account: its offline mode writes one file per run."""
    wandb = pytest.importorskip("wandb", reason="wandb is not installed")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    track(result, to_wandb(project="bandits", dir=str(tmp_path)))
    wandb.teardown()  # all is written
    files = list(tmp_path.glob("wandb/offline-run-*/*.wandb"))
    assert len(files) == 2
    for file in files:
        content = file.read_bytes()
        assert b"linucb on linear-20" in content
        assert b"regret_mean" in content
