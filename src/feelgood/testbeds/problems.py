"""The bandit problems of the datasets, each as a testbed."""

from collections.abc import Mapping
from typing import Any

from feelgood.core.registry import Entry, Family
from feelgood.core.settings import Setting
from feelgood.core.spec import Spec
from feelgood.core.testbed import TESTBEDS, Testbed
from feelgood.data.catalogue import DATASETS, Labelled, Problem, follow_problems
from feelgood.data.datasets import load_dataset, located
from feelgood.testbeds.checks import MAX_HORIZON
from feelgood.testbeds.classification import Classification
from feelgood.testbeds.contexts import PREPROCESS
from feelgood.testbeds.payoffs import Payoffs

#: Known datasets are as the paper has them, and there is nothing to tell about them.
_AS_IN_THE_PAPER: dict[str, Any] = {"intercept": False, "notify": None}


def register_testbed(
    problem: Problem, labelled: type[Classification] = Classification, *, listed: bool = True
) -> None:
    """Register a problem as a testbed. Its data are read when one is built and not before.

    One that is not `listed` is shown on request only.
    """
    horizon = Setting(
        problem.horizon, "usual number of rounds", low=1, high=MAX_HORIZON, static=True
    )
    rules = {"preprocess": PREPROCESS, "horizon": horizon, **problem.settings}

    def make(values: Mapping[str, Any]) -> Testbed:
        own = {name: values[name] for name in problem.settings}
        rest = {name: value for name, value in values.items() if name not in own}
        rows = problem.rows(load_dataset(problem.dataset) if problem.dataset else {}, **own)
        options = {"kinds": rows.kinds, "name": problem.name, **_AS_IN_THE_PAPER, **rest}
        if isinstance(rows, Labelled):
            return labelled.from_arrays(rows.features, rows.labels, arms=problem.arms, **options)
        return Payoffs.from_arrays(
            rows.features, rows.payoffs, likelihood=problem.rewards, **options
        )

    def outline(values: Mapping[str, Any]) -> tuple[Spec, int] | None:
        usual = all(values[name] == rule.default for name, rule in problem.settings.items())
        if problem.dims is None or not usual:
            return None
        located(problem.dataset)  # or a sentence, before anything runs
        dim = problem.dims[values["preprocess"] != "paper"]
        return Spec(arms=problem.arms, dim=dim, rewards=problem.rewards), values["horizon"]

    name, doc = problem.name, problem.doc
    entry: Entry[Testbed] = Entry(name, doc, rules, make, outline, lambda: _in_words(problem))
    names, more = ((name,), ()) if listed else ((), (name,))
    TESTBEDS.add(
        Family(name, doc, lambda n: entry if n == name else None, names, more, problem.rows)
    )


def _in_words(problem: Problem) -> str:
    """What a round shows, and whose data they are."""
    held = DATASETS.get(problem.dataset)
    rows = "a row" if held is None else f"one of {held.rows:,} rows"
    sizes = ""
    if problem.dims is not None:
        paper, standard = problem.dims
        sizes = f" The context has {paper} numbers, or {standard} with preprocess = standard."
    said = f"A round shows {rows}, in a random order, to {problem.arms} arms.{sizes}"
    return said if held is None else f"{said}\n\nData: {held.doc}."


follow_problems(register_testbed)
