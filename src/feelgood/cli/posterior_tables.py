"""Tables of `feelgood posterior`."""

from typing import TYPE_CHECKING

from rich.table import Table

if TYPE_CHECKING:
    from feelgood.posterior import AgentPosterior, Analysis, MeasureRow

#: Columns of the tables, their digits and the unit that they are shown in.
POSTERIOR_COLUMNS = {
    "bias": ("bias (sd)", 3, 1.0),
    "trace": ("variance", 3, 1.0),
    "log_determinant": ("log det", 2, 1.0),
    "largest": ("widest", 2, 1.0),
    "smallest": ("narrowest", 2, 1.0),
    "wasserstein2": ("W₂² (10⁻³)", 2, 1e-3),
    "shape": ("shape", 3, 1.0),
    "cover50": ("in 50 %", 3, 1.0),
    "cover90": ("in 90 %", 3, 1.0),
    "choice": ("choice (%)", 2, 0.01),
    "ess": ("ESS", 0, 1.0),
    "rhat": ("R̂", 3, 1.0),
}
OVERALL = ("bias", "trace", "choice", "ess", "rhat")
#: How the tables say what is in the brackets.
LEGEND = "± Monte Carlo error; distances: in brackets, what exact draws would show"


def law_name(against: str) -> str:
    """What draws were compared with, in words."""
    return "the exact posterior" if against == "posterior" else "its own target"


def _cell(row: "MeasureRow | None") -> str:
    """`value ± error`; for a distance, what exact draws would show is in brackets."""
    if row is None:
        return ""
    from feelgood.posterior.measure_rows import measured_text

    _, digits, unit = POSTERIOR_COLUMNS[row.measure]
    return measured_text(row, digits, unit)


def overall_table(analysis: "Analysis") -> Table:
    """All arms together, one line per agent, data set and law."""
    data = "one run" if analysis.mode == "same" else "its own run"
    title = f"{analysis.testbed}, {analysis.rounds:,} rounds, each agent on {data}"
    table = Table(title=title, caption=LEGEND)
    for column in ("agent", "against"):
        table.add_column(column, no_wrap=True)
    several = len({a.seed for a in analysis.agents}) > 1
    if several:
        table.add_column("seed", justify="right")
    for name in OVERALL:
        table.add_column(POSTERIOR_COLUMNS[name][0], justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for result in analysis.agents:
        for against, comparison in result.comparisons.items():
            rows = {row.measure: row for row in comparison.rows if row.arm is None}
            cells = [result.agent, against]
            if several:
                cells.append(str(result.seed))
            cells += [_cell(rows.get(name)) for name in OVERALL]
            verdict = comparison.verdict
            style = "green" if verdict.exact else "yellow"
            table.add_row(*cells, f"[{style}]{verdict.status}[/{style}]")
    return table


def arm_table(result: "AgentPosterior", against: str) -> Table:
    """Every measure of every arm."""
    comparison = result.comparisons[against]
    table = Table(
        title=f"{result.agent}, seed {result.seed}, against {law_name(against)}", caption=LEGEND
    )
    table.add_column("measure")
    arms = range(len({row.arm for row in comparison.rows if row.arm is not None}))
    for arm in arms:
        plays = int(result.plays[arm]) if len(result.plays) == len(arms) else None
        header = f"arm {arm}" if plays is None else f"arm {arm}, {plays} ×"
        table.add_column(header, justify="right")
    for name, (label, _, _) in POSTERIOR_COLUMNS.items():
        rows = {row.arm: row for row in comparison.rows if row.measure == name}
        if not any(arm in rows for arm in arms):
            continue
        table.add_row(label, *(_cell(rows[arm]) for arm in arms))
    return table
