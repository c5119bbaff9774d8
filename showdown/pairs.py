"""All pairs of a question as a CSV file, and all of them on one HTML page that sorts itself."""

import csv
import html
import io
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from showdown import yardsticks
from showdown.book import Book
from showdown.effects import mean_and_median
from showdown.families import Family
from showdown.places import Place
from showdown.stuck_seeds import Beside, bar_of, beside, together

Row = dict[str, Any]


def rows_of(book: Book, families: Sequence[Family]) -> list[Row]:
    """One row per pair: both regrets, the difference with its interval, three p, the verdict.

    Stuck seeds have an exact test of their own, by Holm's rule over the same family.
    """
    out = []
    for family in families:
        tests = _stuck_tests(book, family)
        for m in family.members:
            e, d = m.effect, m.effect.difference
            test = tests.get((id(e.changed), id(e.base)))
            mean_with, median_with = mean_and_median(e.with_it)
            mean_without, median_without = mean_and_median(e.without)
            out.append(
                {
                    "family": family.name,
                    "testbed": e.testbed,
                    "agent": e.agent,
                    "beside": e.base.agent if e.base else "",
                    "what": e.label,
                    "seeds": len(e.seeds),
                    "mean_with": mean_with,
                    "mean_without": mean_without,
                    "median_with": median_with,
                    "median_without": median_without,
                    "best_fixed_arm": _fixed(book, e.changed),
                    "stuck_with": _stuck(book, e.changed),
                    "stuck_without": _stuck(book, e.base),
                    "freed": test.freed if test else None,
                    "bound": test.bound if test else None,
                    "p_stuck_holm": test.holm if test else None,
                    "difference": d.value if d else None,
                    "low": e.ends[0],
                    "high": e.ends[1],
                    "p": m.raw,
                    "p_holm": m.holm,
                    "p_bh": m.discovery,
                    "better": e.better.value if e.better else None,
                    "ties": e.ties,
                    "verdict": m.word().value,
                    "why": e.why,
                }
            )
    return out


def _stuck_tests(book: Book, family: Family) -> dict[tuple[int, int], Beside]:
    """Those of the pairs that have enough seeds, by their runs."""
    bar = bar_of(book)
    found = [b for e in family.effects for b in beside(e.label, e.changed, e.base, bar)]
    return {(id(b.changed), id(b.base)): b for b in together(found)}


def _fixed(book: Book, run: Any) -> float | None:
    own = None if run is None else book.yardsticks.get(yardsticks.key_of(run))
    return None if own is None else own.fixed


def _stuck(book: Book, run: Any) -> int | None:
    share = None if run is None else yardsticks.stuck(run, book.yardsticks)
    return None if share is None else round(share.value * share.count)


def place_rows(book: Book, found: dict[str, list[Place]]) -> list[Row]:
    """One row per agent and testbed of a ranking."""
    out = []
    for testbed, own in found.items():
        for p in own:
            d = p.beside.difference if p.beside else None
            out.append(
                {
                    "testbed": testbed,
                    "agent": p.result.agent,
                    "settings": json.dumps(dict(p.result.settings), sort_keys=True),
                    "seeds": len(p.result.seeds),
                    "mean": p.mean.value,
                    "low": p.mean.low,
                    "high": p.mean.high,
                    "median": mean_and_median(p.result.final_regret)[1],
                    "stuck": _stuck(book, p.result),
                    "beside_lowest": d.value if d else None,
                    "beside_low": d.low if d else None,
                    "beside_high": d.high if d else None,
                    "p_holm": p.p,
                    "may_be_best": "yes" if p.may_be_best else "no",
                }
            )
    return out


def to_csv(rows: Sequence[Row]) -> str:
    """Numbers to six digits; what is not known is empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    if rows:
        writer.writerow(rows[0])
    for row in rows:
        writer.writerow([_cell(value) for value in row.values()])
    return text.getvalue()


def _cell(value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


COLUMNS = {
    "question": "question",
    "family": "family",
    "testbed": "testbed",
    "agent": "agent",
    "what": "what",
    "seeds": "seeds",
    "mean_without": "regret without",
    "mean_with": "regret with",
    "best_fixed_arm": "best fixed arm",
    "difference": "difference",
    "low": "low",
    "high": "high",
    "p_holm": "p (Holm)",
    "stuck_without": "stuck without",
    "stuck_with": "stuck with",
    "freed": "freed",
    "bound": "bound",
    "p_stuck_holm": "p of stuck (Holm)",
    "verdict": "verdict",
}


def _shown(row: Row, name: str) -> str:
    """A cell; a mean regret that does not beat the best fixed arm is marked."""
    cell, fixed = _cell(row[name]), row["best_fixed_arm"]
    marked = cell and name.startswith("mean_") and fixed is not None
    return f"{cell}{yardsticks.mark(row[name], fixed)}" if marked else cell


def to_html(by_question: Mapping[str, Sequence[Row]]) -> str:
    """One page with all pairs: a click on a heading sorts, a word in the box filters."""
    head = "".join(f"<th tabindex=0>{html.escape(name)}</th>" for name in COLUMNS.values())
    lines = []
    for question, rows in by_question.items():
        for row in rows:
            cells = [_shown({"question": question, **row}, name) for name in COLUMNS]
            lines.append("<tr>" + "".join(f"<td>{html.escape(c)}</td>" for c in cells) + "</tr>")
    return PAGE.replace("@head@", head).replace("@rows@", "\n".join(lines))


PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>All pairs</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
:root { color-scheme: light dark; font: 15px/1.45 system-ui, sans-serif; }
body { margin: 1.5rem; }
div { max-height: 80vh; overflow: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .2rem .6rem; text-align: left; border-bottom: 1px solid #8884; }
th { cursor: pointer; position: sticky; top: 0; background: Canvas; white-space: nowrap; }
td:nth-child(n+6):nth-child(-n+18), th:nth-child(n+6):nth-child(-n+18) { text-align: right; }
input { font: inherit; padding: .3rem .5rem; width: 22rem; max-width: 90vw; }
</style></head><body>
<h1>All pairs</h1>
<p>Regret with something beside without it, over the same seeds. A click on a heading sorts.
† does not beat the best fixed arm. Where <i>low</i> or <i>high</i> is empty, too few seeds differ
to bound the difference. <i>Freed</i> seeds are stuck only without it, <i>bound</i> ones only with
it. Each p is by Holm's rule over the pairs of its family, of a studentised bootstrap of regrets, or
of an exact test of stuck seeds.</p>
<p><input type="search" placeholder="words to look for, such as adult hurts"
 aria-label="words to look for"> <span id="count"></span></p>
<div><table><thead><tr>@head@</tr></thead><tbody>
@rows@
</tbody></table></div>
<script>
const body = document.querySelector("tbody"), rows = [...body.rows];
const box = document.querySelector("input"), heads = [...document.querySelectorAll("th")];
const text = (row, i) => row.cells[i].textContent.replace("†", "");
const value = t => t === "" ? NaN : Number(t);
let column = -1, down = false;
function sort(i) {
  down = column === i && !down; column = i;
  const sign = down ? -1 : 1, key = r => text(r, i);
  const numbers = rows.every(r => key(r) === "" || !isNaN(value(key(r))));
  rows.sort((a, b) => {
    const x = key(a), y = key(b);
    if (x === "" || y === "") return (x === "") - (y === "");
    return sign * (numbers ? value(x) - value(y) : x.localeCompare(y));
  });
  heads.forEach((h, k) => h.ariaSort = k === i ? (down ? "descending" : "ascending") : "none");
  body.append(...rows);
}
function filter() {
  const words = box.value.toLowerCase().split(/\\s+/).filter(Boolean);
  let shown = 0;
  for (const row of rows) {
    const own = row.textContent.toLowerCase();
    row.hidden = !words.every(w => own.includes(w));
    shown += !row.hidden;
  }
  document.getElementById("count").textContent = `${shown} of ${rows.length} pairs`;
}
heads.forEach((h, i) => {
  h.onclick = () => sort(i);
  h.onkeydown = e => { if (e.key === "Enter") sort(i); };
});
box.oninput = filter; filter();
</script></body></html>
"""
