"""Altair charts, one per file; each registers itself in `report.chart_kinds`.

Everything is aggregated here: a chart holds means, bands and intervals, and at most `DOTS` seeds
of a result. A chart has two functions. One draws one panel per testbed from a list of
`AgentResult`; it rests on one that draws a single panel, which the page uses with its own `Style`.
"""
