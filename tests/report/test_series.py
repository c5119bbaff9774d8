"""Names of results, and the sweeps among them."""

from made_up import made_up, swept

from feelgood.report.series import find_sweeps, name_series, ordered_labels


def test_labels_say_what_differs_and_only_that() -> None:
    results = [
        made_up("linucb", settings={"alpha": 0.1, "rho": 1.0}),
        made_up("linucb", settings={"alpha": 1.0, "rho": 1.0}),
        made_up("lints", settings={"rho": 1.0}),
        # Another value on another testbed is no other series.
        made_up("lints", "linear-40", settings={"rho": 2.0}),
        made_up("lints", "linear-40", settings={"rho": 2.0}, rounds=50),
    ]
    series = name_series(results)
    assert [s.label for s in series] == [
        "linucb α=0.1",
        "linucb α=1",
        "lints",
        "lints",
        "lints",
    ]
    assert [s.problem for s in series][2:] == [
        "linear-20",
        "linear-40 rounds=1000",
        "linear-40 rounds=50",
    ]


def test_equal_results_have_different_labels() -> None:
    labels = [s.label for s in name_series([made_up("lints"), made_up("lints")])]
    assert labels == ["lints", "lints #2"]


def test_labels_are_ordered_by_regret_and_broken_ones_come_last() -> None:
    results = [made_up("a", diverged=6), made_up("b", level=90.0), made_up("c", level=10.0)]
    assert ordered_labels(name_series(results)) == ["c", "b", "a"]


def test_sweeps_are_found_everything_else_being_equal() -> None:
    found = find_sweeps(name_series(swept()))
    assert [(s.agent, s.axes, len(s.members)) for s in found] == [
        ("fglmcts", ("lam", "beta"), 6),
        ("pfglmcts", ("lam",), 3),
        ("fghmcts", ("lam",), 3),
    ]


def test_settings_that_change_together_are_no_sweep() -> None:
    together = [made_up("lmcts", settings={"beta": b, "step": 1 / b}) for b in (1.0, 2.0, 4.0)]
    assert find_sweeps(name_series(together)) == []
