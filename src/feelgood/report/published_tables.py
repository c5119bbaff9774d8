"""Tables of ours beside the published, for people, papers and programs."""

import csv
import io
import math
from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from feelgood.core.numbers import mean_std_count, p_text, table_number
from feelgood.report.latex import escape_latex
from feelgood.report.published_comparisons import (
    ROW_LEVEL,
    PublishedComparison,
    PublishedVerdict,
    caption,
    in_percent,
)

TABLE_COLUMNS = (
    "testbed",
    "agent",
    "ours",
    "median",
    "published",
    "difference, 90 %",
    "seen from",
    "p",
    "verdict",
)


def _cells(comparison: PublishedComparison) -> list[str]:
    c, theirs = comparison, comparison.row.published
    published = mean_std_count(theirs.mean, theirs.std, theirs.seeds)
    if c.ours is None:
        middle = ["–", "–", published, "–", "–", "–"]
    else:
        # Without the published rounds the p of a test would be read as if it meant something.
        compared = c.test is not None and c.rounds == c.row.rounds
        middle = [
            mean_std_count(c.ours.mean, c.ours.std, c.ours.count),
            table_number(c.ours.median),
            published,
            c.interval if compared else "–",
            in_percent(c.smallest, theirs.mean) if compared else "–",
            p_text(c.test.p) if c.test is not None and compared else "–",
        ]
    return [c.row.testbed, c.label, *middle, c.verdict.value]


def _notes(comparisons: Sequence[PublishedComparison]) -> dict[str, int]:
    """Reasons, numbered from 1 in the order in which they appear."""
    reasons = dict.fromkeys(c.reason for c in comparisons if c.reason)
    return {reason: i for i, reason in enumerate(reasons, start=1)}


def _note_lines(comparisons: Sequence[PublishedComparison]) -> list[str]:
    return [f"({i}) {reason}." for reason, i in _notes(comparisons).items()]


_STYLES = {
    PublishedVerdict.AGREES: "green",
    PublishedVerdict.EXPLAINED: "cyan",
    PublishedVerdict.DIFFERS: "red",
    PublishedVerdict.UNCERTAIN: "yellow",
    PublishedVerdict.CANNOT: "dim",
    PublishedVerdict.NOT_RUN: "dim",
}


def to_rich(
    comparisons: Sequence[PublishedComparison], title: str, level: float = ROW_LEVEL
) -> Table:
    """A table for the terminal; reasons are numbered and stand below."""
    notes = _notes(comparisons)
    below = [caption(comparisons, title, level), *_note_lines(comparisons)]
    table = Table(caption=Text("\n".join(below)), caption_justify="left")
    one_testbed = len({c.row.testbed for c in comparisons}) == 1
    if one_testbed:
        table.title = Text(comparisons[0].row.testbed)
    for name in TABLE_COLUMNS[one_testbed:]:
        table.add_column(
            name, justify="left" if name in ("testbed", "agent", "verdict") else "right"
        )
    for c in comparisons:
        *cells, verdict = _cells(c)[one_testbed:]
        mark = f" ({notes[c.reason]})" if c.reason else ""
        texts = [Text(cell) for cell in cells]
        table.add_row(*texts, Text(verdict + mark, style=_STYLES[c.verdict]))
    return table


def _escape_markdown(text: str) -> str:
    for sign in "\\|*_`<":
        text = text.replace(sign, "\\" + sign)
    return text


def to_markdown(
    comparisons: Sequence[PublishedComparison], title: str, level: float = ROW_LEVEL
) -> str:
    """A Markdown table with its caption above and the numbered reasons below."""
    notes = _notes(comparisons)
    lines = [_escape_markdown(caption(comparisons, title, level)), ""]
    lines.append("| " + " | ".join(TABLE_COLUMNS) + " |")
    lines.append(
        "|"
        + "|".join("---" if c in ("testbed", "agent", "verdict") else "---:" for c in TABLE_COLUMNS)
        + "|"
    )
    for c in comparisons:
        cells = _cells(c)
        cells[-1] += f" ({notes[c.reason]})" if c.reason else ""
        lines.append("| " + " | ".join(_escape_markdown(cell) for cell in cells) + " |")
    below = [_escape_markdown(line) for line in _note_lines(comparisons)]
    return "\n".join([*lines, *(["", "  \n".join(below)] if below else [])]) + "\n"


def to_latex(
    comparisons: Sequence[PublishedComparison], title: str, level: float = ROW_LEVEL
) -> str:
    """A LaTeX table (needs the package booktabs) with the level in its caption."""
    notes = _notes(comparisons)
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{escape_latex(caption(comparisons, title, level))}}}",
        r"\begin{tabular}{llrrrrrrl}",
        r"\toprule",
        " & ".join(TABLE_COLUMNS) + r" \\",
        r"\midrule",
    ]
    for c in comparisons:
        cells = [escape_latex(cell) for cell in _cells(c)]
        cells[-1] += rf"\textsuperscript{{{notes[c.reason]}}}" if c.reason else ""
        lines.append(" & ".join(cells) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}"]
    lines += [
        rf"\par\footnotesize\textsuperscript{{{i}}} {escape_latex(reason)}."
        for reason, i in notes.items()
    ]
    return "\n".join([*lines, r"\end{table}"]) + "\n"


CSV_COLUMNS = [
    "table",
    "testbed",
    "agent",
    "lam",
    "beta",
    "delta",
    "gamma",
    "preset",
    "layers",
    "tuning",
    "metric",
    "rounds",
    "published_rounds",
    "ours_mean",
    "ours_std",
    "ours_median",
    "ours_q25",
    "ours_q75",
    "ours_seeds",
    "ours_diverged",
    "published_mean",
    "published_std",
    "published_seeds",
    "difference",
    "difference_low",
    "difference_high",
    "smallest_difference",
    "p",
    "equivalence_p",
    "level",
    "verdict",
    "reason",
    "evidence",
    "released_run",
    "released_mean",
    "released_std",
    "released_seeds",
]


def to_csv(comparisons: Sequence[PublishedComparison], title: str, level: float = ROW_LEVEL) -> str:
    """All numbers in full; empty cells where there is none. Title and level are in the rows."""
    del title
    out = io.StringIO()
    writer = csv.DictWriter(out, CSV_COLUMNS, lineterminator="\n")
    writer.writeheader()
    for c in comparisons:
        theirs = c.row.published
        record: dict[str, object] = {
            "table": theirs.table,
            "testbed": c.row.testbed,
            "agent": c.row.agent,
            "lam": theirs.lam,
            "beta": theirs.beta,
            "delta": theirs.delta,
            "gamma": theirs.gamma,
            "preset": c.row.preset,
            "layers": c.layers,
            "tuning": c.row.tuned,
            "metric": theirs.metric,
            "published_rounds": c.row.rounds,
            "published_mean": theirs.mean,
            "published_std": theirs.std,
            "published_seeds": theirs.seeds,
            "level": level,
            "verdict": c.verdict.value,
            "reason": c.reason,
            "evidence": c.evidence,
        }
        if c.ours is not None:
            record |= {
                "rounds": c.rounds,
                "ours_mean": c.ours.mean,
                "ours_std": c.ours.std,
                "ours_median": c.ours.median,
                "ours_q25": c.ours.q25,
                "ours_q75": c.ours.q75,
                "ours_seeds": c.ours.count,
                "ours_diverged": c.diverged,
                "difference": c.ours.mean - theirs.mean,
                "smallest_difference": c.smallest,
                "p": c.test.p if c.test else None,
            }
        if c.equivalence is not None:
            record |= {
                "difference_low": c.equivalence.low,
                "difference_high": c.equivalence.high,
                "equivalence_p": c.equivalence.p,
            }
        if c.released is not None and c.released.ours is not None:
            record |= {
                "released_run": c.released.row.stands_for,
                "released_mean": c.released.ours.mean,
                "released_std": c.released.ours.std,
                "released_seeds": c.released.ours.count,
            }
        writer.writerow({k: "" if _absent(v) else v for k, v in record.items()})
    return out.getvalue()


def _absent(value: object) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


TEXT_FORMATS = {"markdown": to_markdown, "csv": to_csv, "latex": to_latex}
