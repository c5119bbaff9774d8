"""Ours beside the published: one comparison a row, rendered for people, papers and programs.

The verdict comes from Welch's test on the two means at a level that is stated with the table.
"""

import csv
import dataclasses
import enum
import io
import math
from collections.abc import Sequence

import numpy as np
from rich.table import Table

from feelgood.core.errors import FeelgoodError
from feelgood.engine.results import AgentResult
from feelgood.paper.tables import Row
from feelgood.report.ranking import values_at
from feelgood.stats.summary import Summary
from feelgood.stats.welch import WelchTest, welch

#: Level of the test of one row: a hundred right rows have one false "differs" on average.
LEVEL = 0.01
#: Acceptance at the end of a run below which a chain counts as frozen.
FROZEN = 0.01


class Verdict(enum.Enum):
    """What the comparison of two numbers says."""

    AGREES = "agrees"
    DIFFERS = "differs"
    NOT_COMPARABLE = "not comparable"
    NOT_RUN = "not run"


@dataclasses.dataclass(frozen=True)
class Comparison:
    """A published number, ours beside it, and what to make of the two."""

    row: Row
    ours: Summary | None
    #: Rounds and chains of our run; chains that diverged are not in `ours`.
    rounds: int
    diverged: int
    test: WelchTest | None
    verdict: Verdict
    #: Why they cannot be compared or differ; empty where they agree.
    reason: str
    #: Hidden layers of our agent's network; empty where it has none.
    layers: str = ""
    #: Our run itself; None where there is none.
    run: AgentResult | None = dataclasses.field(default=None, compare=False, repr=False)

    @property
    def label(self) -> str:
        """The agent with what sets the row apart, and its network."""
        return f"{self.row.label} [{self.layers}]" if self.layers else self.row.label


def compare_row(row: Row, result: AgentResult | str, level: float = LEVEL) -> Comparison:
    """The comparison of a published number with our result; a string says why there is none."""
    if isinstance(result, str):
        return Comparison(row, None, 0, 0, None, Verdict.NOT_RUN, result)
    values = values_at(result, result.seeds, "final_regret")
    if row.published.metric == "simple_regret":
        values = values_at(result, result.seeds, "simple_regret")
    ours = Summary.of(values)
    diverged = len(values) - ours.count
    layers = str(result.settings.get("layers", ""))
    theirs = row.published
    test = welch(ours.mean, ours.std, ours.count, theirs.mean, theirs.std, theirs.seeds, level)

    def say(verdict: Verdict, reason: str) -> Comparison:
        numbers = (row, ours, result.rounds, diverged, test, verdict, reason, layers)
        return Comparison(*numbers, run=result)

    if row.not_comparable is not None:
        return say(Verdict.NOT_COMPARABLE, row.not_comparable)
    if result.rounds != row.rounds:
        return say(
            Verdict.NOT_COMPARABLE,
            f"run with T = {result.rounds:,} rounds, published with T = {row.rounds:,}",
        )
    if diverged:
        return say(
            Verdict.DIFFERS,
            f"{diverged} of our {len(values)} chains diverged; the mean is that of the others",
        )
    if ours.count < 2:
        return say(Verdict.NOT_COMPARABLE, "one seed of ours is too few for a test of the means")
    if not test.rejects:
        return say(Verdict.AGREES, "")
    reasons = [_frozen(result), f"possible reason: {row.remark}" if row.remark else ""]
    return say(Verdict.DIFFERS, "; ".join(filter(None, reasons)) or "no reason is known")


def _frozen(result: AgentResult) -> str:
    """Says so where our chains have stopped moving, which no property of the paper's explains."""
    accepted = result.health.get("acceptance")
    if accepted is None or not np.nanmean(accepted[:, -1]) < FROZEN:
        return ""
    return f"our chains end frozen, with less than {FROZEN:.0%} of proposals accepted"


def compare_rows(
    rows: Sequence[Row], results: Sequence[AgentResult | str], level: float = LEVEL
) -> tuple[Comparison, ...]:
    """Comparisons of rows with the results that belong to them, in the same order."""
    if not 0.0 < level < 1.0:
        raise FeelgoodError(f"level = {level} is not allowed: use a number between 0 and 1.")
    return tuple(compare_row(r, ours, level) for r, ours in zip(rows, results, strict=True))


def counts(comparisons: Sequence[Comparison]) -> str:
    """How many rows have which verdict, in words."""
    numbers = {v: sum(c.verdict is v for c in comparisons) for v in Verdict}
    return ", ".join(f"{v.value}: {n}" for v, n in numbers.items() if n)


def caption(comparisons: Sequence[Comparison], title: str, level: float = LEVEL) -> str:
    """Title, what the columns are, and the level of the verdicts."""
    return (
        f"{title}. Mean ± sample standard deviation (number of seeds). Verdicts: Welch's two-sided "
        f"test of equal means at level {level:g} for each row. Rows: {counts(comparisons)}."
        f"{about_networks(comparisons)}"
    )


def about_networks(comparisons: Sequence[Comparison]) -> str:
    """What the layers in brackets are and where they come from; empty where there are none."""
    if not any(c.layers for c in comparisons):
        return ""
    tuned = any(c.row.tuned for c in comparisons)
    return " In brackets: the hidden layers, " + (
        "chosen by tuning." if tuned else "as the paper's preset has them."
    )


# Cells of the table, as text -----------------------------------------------------------------

COLUMNS = ("testbed", "agent", "ours", "median", "published", "difference", "p", "verdict")


def _number(value: float) -> str:
    if not math.isfinite(value):
        return "–"
    return f"{value:,.1f}" if abs(value) < 10_000 else f"{value:,.0f}"


def _spread(mean: float, std: float, count: int) -> str:
    if count == 0:
        return "–"
    spread = f" ± {_number(std)}" if math.isfinite(std) else ""
    return f"{_number(mean)}{spread} ({count})"


def _p(value: float) -> str:
    if not math.isfinite(value):
        return "–"
    return "<0.0001" if value < 1e-4 else f"{value:.4f}" if value < 0.1 else f"{value:.2f}"


def _cells(comparison: Comparison) -> list[str]:
    c, theirs = comparison, comparison.row.published
    published = _spread(theirs.mean, theirs.std, theirs.seeds)
    if c.ours is None:
        middle = ["–", "–", published, "–", "–"]
    else:
        difference = c.ours.mean - theirs.mean
        # Without comparable numbers the p of a test would be read as if it meant something.
        p = c.test.p if c.test and c.verdict in (Verdict.AGREES, Verdict.DIFFERS) else math.nan
        middle = [
            _spread(c.ours.mean, c.ours.std, c.ours.count),
            _number(c.ours.median),
            published,
            ("+" if difference > 0 else "") + _number(difference),
            _p(p),
        ]
    return [c.row.testbed, c.label, *middle, c.verdict.value]


def _notes(comparisons: Sequence[Comparison]) -> dict[str, int]:
    """Reasons, numbered from 1 in the order in which they appear."""
    reasons = dict.fromkeys(c.reason for c in comparisons if c.reason)
    return {reason: i for i, reason in enumerate(reasons, start=1)}


def _note_lines(comparisons: Sequence[Comparison]) -> list[str]:
    return [f"({i}) {reason}." for reason, i in _notes(comparisons).items()]


# Renderings ----------------------------------------------------------------------------------

_STYLES = {
    Verdict.AGREES: "green",
    Verdict.DIFFERS: "red",
    Verdict.NOT_COMPARABLE: "yellow",
    Verdict.NOT_RUN: "dim",
}


def to_rich(comparisons: Sequence[Comparison], title: str, level: float = LEVEL) -> Table:
    """A table for the terminal; reasons are numbered and stand below."""
    from rich.text import Text

    notes = _notes(comparisons)
    below = [caption(comparisons, title, level), *_note_lines(comparisons)]
    table = Table(caption=Text("\n".join(below)), caption_justify="left")
    one_testbed = len({c.row.testbed for c in comparisons}) == 1
    if one_testbed:
        table.title = Text(comparisons[0].row.testbed)
    for name in COLUMNS[one_testbed:]:
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


def to_markdown(comparisons: Sequence[Comparison], title: str, level: float = LEVEL) -> str:
    """A Markdown table with its caption above and the numbered reasons below."""
    notes = _notes(comparisons)
    lines = [_escape_markdown(caption(comparisons, title, level)), ""]
    lines.append("| " + " | ".join(COLUMNS) + " |")
    lines.append(
        "|"
        + "|".join("---" if c in ("testbed", "agent", "verdict") else "---:" for c in COLUMNS)
        + "|"
    )
    for c in comparisons:
        cells = _cells(c)
        cells[-1] += f" ({notes[c.reason]})" if c.reason else ""
        lines.append("| " + " | ".join(_escape_markdown(cell) for cell in cells) + " |")
    below = [_escape_markdown(line) for line in _note_lines(comparisons)]
    return "\n".join([*lines, *(["", "  \n".join(below)] if below else [])]) + "\n"


_LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"$<$",
    ">": r"$>$",
    "±": r"$\pm$",
    "−": r"$-$",
    "×": r"$\times$",
    "≥": r"$\ge$",
    "≤": r"$\le$",
    "√": r"$\surd$",
    "–": "--",
    "³": r"\textsuperscript{3}",
    **{
        sign: f"$\\{name}$"
        for sign, name in zip(
            "αβγδεηθλμρσ",
            [
                "alpha",
                "beta",
                "gamma",
                "delta",
                "epsilon",
                "eta",
                "theta",
                "lambda",
                "mu",
                "rho",
                "sigma",
            ],
            strict=True,
        )
    },
}


def escape_latex(text: str) -> str:
    """Text that LaTeX prints as it stands; Greek letters and signs become formulas."""
    return "".join(_LATEX.get(sign, sign) for sign in text)


def to_latex(comparisons: Sequence[Comparison], title: str, level: float = LEVEL) -> str:
    """A LaTeX table (needs the package booktabs) with the level in its caption."""
    notes = _notes(comparisons)
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{escape_latex(caption(comparisons, title, level))}}}",
        r"\begin{tabular}{llrrrrrl}",
        r"\toprule",
        " & ".join(COLUMNS) + r" \\",
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
    "p",
    "level",
    "verdict",
    "reason",
]


def to_csv(comparisons: Sequence[Comparison], title: str, level: float = LEVEL) -> str:
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
                "p": c.test.p if c.test else None,
            }
        writer.writerow({k: "" if _absent(v) else v for k, v in record.items()})
    return out.getvalue()


def _absent(value: object) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


TEXT_FORMATS = {"markdown": to_markdown, "csv": to_csv, "latex": to_latex}
