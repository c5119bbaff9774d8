"""The table of agents on a log, as texts: for the terminal and for the page."""

from feelgood.core.numbers import with_half_width
from feelgood.evaluation.evaluating import LogEvaluation
from feelgood.stats.off_policy import ESTIMATORS, PolicyValue

#: What people call the estimators.
ESTIMATOR_NAMES = {
    "dr": "doubly robust",
    "snips": "self-normalised",
    "ips": "IPS",
    "dm": "direct",
    "replay": "replay",
}


def used_estimators(found: LogEvaluation) -> list[str]:
    """The estimators that the log allows, in their order."""
    return [key for key in ESTIMATORS if any(key in value.values for value in found.values)]


def value_table(found: LogEvaluation) -> tuple[list[str], list[list[str]]]:
    """Heads, and one row per agent, the log itself first."""
    used = used_estimators(found)
    heads = ["agent", *(ESTIMATOR_NAMES[key] for key in used), "effective"]
    rows = [["(the log)", _cell(found.log), *[""] * (len(used) - 1), f"{found.decisions:,}"]]
    for value in found.values:
        label = value.agent + (f" × {value.members}" if value.members > 1 else "")
        cells = [_cell(value.values.get(key)) for key in used]
        rows.append([label, *cells, f"{value.effective:,.0f}"])
    return heads, rows


def table_caption(found: LogEvaluation) -> str:
    """How to read the table."""
    return (
        f"± half of a {100 * found.level:.3g} % normal interval. Agents learned from "
        f"{found.learned_first:,} decisions first, then block by block, each after being judged."
    )


def _cell(value: PolicyValue | None) -> str:
    return "–" if value is None else with_half_width(value.value, value.high - value.value)
