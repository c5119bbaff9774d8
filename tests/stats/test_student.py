"""Student's t against scipy."""

import pytest
import scipy.stats

from feelgood.stats.student import t_quantile, t_two_sided


@pytest.mark.parametrize("df", [1.0, 2.5, 9.0, 17.3, 100.0, 1e4])
@pytest.mark.parametrize("t", [0.0, 1e-3, 0.7, 2.0, 6.0, 40.0])
def test_student_tails_are_those_of_scipy(t: float, df: float) -> None:
    assert t_two_sided(t, df) == pytest.approx(2 * scipy.stats.t.sf(t, df), rel=1e-9, abs=1e-300)
    assert t_two_sided(-t, df) == t_two_sided(t, df)


@pytest.mark.parametrize("df", [1.0, 4.0, 9.0, 99.0])
@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.999])
def test_student_quantiles_are_those_of_scipy(level: float, df: float) -> None:
    expected = scipy.stats.t.ppf(0.5 + level / 2, df)
    assert t_quantile(level, df) == pytest.approx(expected, rel=1e-9)
