"""Results for experiment trackers: one small callback, called once per agent and setting."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from feelgood.core.errors import missing_package
from feelgood.engine.results import AgentResult

#: The mean regret along a run: pairs of a round and a number.
Curve = Sequence[tuple[int, float]]
#: What a tracker is: it gets a name, settings, the curve, and numbers by name.
Tracker = Callable[[str, Mapping[str, Any], Curve, Mapping[str, float]], object]


def track(results: Iterable[AgentResult], tracker: Tracker) -> None:
    """Hand every agent and setting of a run to a tracker.

    **Arguments:**

    - `results`: a `RunResult`, or any sequence of results.
    - `tracker`: called with the agent's and testbed's name, all settings, the mean regret along the
      run, and the numbers at its end. `to_mlflow()` and `to_wandb()` make two such functions.

    **Example:**

    >>> import feelgood
    >>> from feelgood.adapters.tracking import track
    >>> result = feelgood.run("linear-20", "uniform", rounds=50, seeds=2)
    >>> track(result, lambda name, settings, curve, numbers: print(name, curve[-1][0]))
    uniform on linear-20 50
    """
    for result in results:
        regret = result.regret
        numbers = {
            "regret_mean": regret.mean,
            "regret_std": regret.std,
            "regret_sem": regret.sem,
            "best_arm_rate": float(result.best_arm_rate.mean()),
            "diverged": float((result.diverged_at >= 0).sum()),
            "seeds": float(len(result.seeds)),
            "compile_s": result.compile_s,
            "run_s": result.run_s,
        }
        settings = {
            "agent": result.agent,
            "testbed": result.testbed,
            "rounds": result.rounds,
            **{f"agent.{key}": value for key, value in result.settings.items()},
            **{f"testbed.{key}": value for key, value in result.testbed_settings.items()},
        }
        means = result.curve_mean()
        curve = [(int(t), float(v)) for t, v in zip(result.curve_rounds, means, strict=True)]
        tracker(f"{result.agent} on {result.testbed}", settings, curve, numbers)


def to_mlflow() -> Tracker:
    """A tracker for MLflow: one run per agent and setting, in the experiment that is set."""
    try:
        import mlflow
    except ModuleNotFoundError:
        raise missing_package("this tracker needs", "mlflow", "mlflow") from None

    def log(
        name: str, settings: Mapping[str, Any], curve: Curve, numbers: Mapping[str, float]
    ) -> None:
        with mlflow.start_run(run_name=name, nested=mlflow.active_run() is not None):
            mlflow.log_params(dict(settings))
            for step, value in curve:
                mlflow.log_metric("regret", value, step=step)
            mlflow.log_metrics(dict(numbers))

    return log


def to_wandb(**options: Any) -> Tracker:
    """A tracker for Weights & Biases: one run per agent and setting; options as of `wandb.init`."""
    try:
        import wandb
    except ModuleNotFoundError:
        raise missing_package("this tracker needs", "wandb", "wandb") from None

    def log(
        name: str, settings: Mapping[str, Any], curve: Curve, numbers: Mapping[str, float]
    ) -> None:
        with wandb.init(name=name, config=dict(settings), **options) as run:
            for step, value in curve:
                run.log({"regret": value}, step=step)
            run.summary.update(dict(numbers))

    return log
