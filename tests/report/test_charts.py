"""Charts: valid, drawn, and of the right numbers."""

from pathlib import Path

import altair as alt
import numpy as np
import pytest
from made_up import few, made_up, swept

import feelgood
from feelgood import FeelgoodError
from feelgood.report import page
from feelgood.report.charts.compute import regret_against_compute
from feelgood.report.charts.curves import curve_rows, regret_curves
from feelgood.report.charts.final import final_intervals
from feelgood.report.charts.health import sampler_health
from feelgood.report.charts.sweep import sweep_charts
from feelgood.report.rendering import render, save_chart, to_spec
from feelgood.report.series import name_series
from feelgood.report.theme import INKS, PALETTES

CHARTS = {
    "curves": lambda: regret_curves(few()),
    "curves, logarithmic": lambda: regret_curves(few(), log_x=True, log_y=True, band="std"),
    "final": lambda: final_intervals(few()),
    "sweeps": lambda: sweep_charts(swept()),
    "health": lambda: sampler_health(few()),
    "compute": lambda: regret_against_compute(few()),
}


@pytest.mark.parametrize("name", CHARTS)
def test_charts_are_valid_vega_lite_and_can_be_drawn(name: str) -> None:
    chart = CHARTS[name]()
    spec = to_spec(chart)
    alt.Chart.from_dict(spec, validate=True)
    drawn = render(chart, "svg").decode()
    assert drawn.startswith("<svg")
    assert drawn.count("<path") > 10
    assert "NaN" not in drawn


def test_pictures_have_the_formats_that_their_names_say(tmp_path: Path) -> None:
    chart = final_intervals([made_up("lints")])
    for suffix, magic in ((".png", b"\x89PNG\r\n"), (".svg", b"<svg"), (".pdf", b"%PDF-")):
        file = tmp_path / f"figure{suffix}"
        save_chart(chart, file)
        assert file.read_bytes().startswith(magic)
    with pytest.raises(FeelgoodError, match="'gif'"):
        save_chart(chart, tmp_path / "figure.gif")


def test_curves_hold_the_mean_and_the_quantiles_of_the_living_chains() -> None:
    result = made_up("malats", diverged=2, seeds=20)
    (series,) = name_series([result])
    last = curve_rows(series, 50, "quantile")[-1]
    living = result.curve[2:, -1]
    assert last["round"] == 1_000
    assert last["seeds"] == 18
    assert last["mean"] == pytest.approx(living.mean(), rel=1e-4)
    assert last["low"] == pytest.approx(np.quantile(living, 0.1), rel=1e-4)
    assert last["high"] == pytest.approx(np.quantile(living, 0.9), rel=1e-4)
    std = curve_rows(series, 50, "std")[-1]
    assert std["high"] == pytest.approx(living.mean() + living.std(ddof=1), rel=1e-4)


def test_one_seed_and_chains_that_all_diverged_are_drawn_as_far_as_they_go() -> None:
    results = [made_up("lmcts", seeds=1), made_up("malats", diverged=6)]
    for draw in (regret_curves, final_intervals, sampler_health):
        assert render(draw(results), "svg")
    assert render(sweep_charts([made_up("a", seeds=1, settings={"k": k}) for k in (1, 2)]), "svg")


def test_a_real_run_can_be_drawn_and_reported() -> None:
    result = feelgood.run("linear-20", ["uniform"], rounds=30, seeds=2)
    assert render(regret_curves(list(result)), "svg")
    assert "uniform" in page.build_page(list(result))


def _luminances(colour: str) -> tuple[np.ndarray, float]:
    """Linear RGB and relative luminance of a colour (WCAG 2.1)."""
    values = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)
    return linear, float(linear @ [0.2126, 0.7152, 0.0722])


#: Full colour blindness in linear RGB: Machado, Oliveira and Fernandes, 2009.
BLINDNESS = {
    "none": np.eye(3),
    "protan": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    "deutan": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
    "tritan": [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]],
}


def _lab(linear: np.ndarray) -> np.ndarray:
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    t = xyz @ np.clip(linear, 0, 1) / [0.9505, 1.0, 1.089]
    f = np.where(t > 0.008856, np.cbrt(t), 7.787 * t + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("theme", PALETTES)
@pytest.mark.parametrize("kind", BLINDNESS)
def test_colours_stay_apart_for_colour_blind_readers(theme: str, kind: str) -> None:
    seen = [_lab(np.array(BLINDNESS[kind]) @ _luminances(c)[0]) for c in PALETTES[theme]]
    apart = [float(np.linalg.norm(a - b)) for i, a in enumerate(seen) for b in seen[:i]]
    assert min(apart) > 18.0  # 2.3 is just noticeable side by side


@pytest.mark.parametrize("theme", PALETTES)
def test_colours_and_text_stand_out_from_the_paper(theme: str) -> None:
    def contrast(colour: str) -> float:
        ends = sorted((_luminances(colour)[1], _luminances(INKS[theme]["paper"])[1]))
        return (ends[1] + 0.05) / (ends[0] + 0.05)

    assert min(map(contrast, PALETTES[theme])) > 3.0  # WCAG: graphics
    assert contrast(INKS[theme]["soft"]) > 4.5  # WCAG: text
