"""The wheel, installed into a clean environment, serves a new user without the checkout.

The walks are the first ten minutes of three people. One benchmarks an agent of her own, one has a
table of her own, and one reads README from top to bottom. The last walk is quick. What the others
check, other quick tests check without the wheel.
"""

import re
import zipfile
from email import message_from_bytes
from pathlib import Path

import numpy as np
import pytest
from browsing import opened
from clean_install import ROOT, install, run
from fences import Snippet, snippets


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install(tmp_path_factory.mktemp("wheel"))


@pytest.fixture
def feelgood(clean: Path) -> Path:
    return clean / "bin" / "feelgood"


def test_imports_from_the_wheel(clean: Path, tmp_path: Path) -> None:
    printed = run(
        clean / "bin" / "python", "-c", "import feelgood; print(feelgood.__file__)", cwd=tmp_path
    )
    imported = Path(printed.strip()).resolve()
    assert imported.is_relative_to(clean.resolve())
    assert not imported.is_relative_to(ROOT)


def test_type_marker_is_shipped(clean: Path) -> None:
    assert list(clean.rglob("feelgood/py.typed"))


def test_links_of_the_package_page_work_there(clean: Path) -> None:
    """A registry shows README without the repository: only addresses with a host lead somewhere."""
    (wheel,) = (clean.parent / "dist").glob("feelgood-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        metadata = message_from_bytes(archive.read(name))
    text = str(metadata.get_payload())
    assert "feelgood compares ways to explore" in text
    targets = re.findall(r"\]\(([^)]+)\)", text)
    assert targets
    assert [t for t in targets if not t.startswith("https://")] == []
    assert any("arxiv.org" in url for url in metadata.get_all("Project-URL", []))


STUDY = """
plugins = ["boltzmann.py"]
rounds = 60
seeds = 3
agents = ["boltzmann", "uniform", "linucb"]
testbeds = ["linear-20", "wheel-0.5"]
"""


@pytest.mark.slow
def test_a_walk_from_an_agent_of_ones_own_to_the_page(feelgood: Path, tmp_path: Path) -> None:
    """Three agents on two testbeds are six batches, shared by two workers."""
    page = ROOT / "docs" / "adding-an-agent.md"
    plugin = next(f for f in snippets(page) if f.title == "boltzmann.py")
    (tmp_path / "boltzmann.py").write_text(plugin.text)
    (tmp_path / "mine.toml").write_text(STUDY)
    run(feelgood, "study", "run", "mine.toml", "--workers", "2", cwd=tmp_path)
    shown = run(feelgood, "study", "show", "mine.toml", cwd=tmp_path)
    assert "6 of 6" in shown, shown
    run(feelgood, "report", "mine-results", "--out", "page.html", cwd=tmp_path)
    with opened(tmp_path / "page.html") as browser:
        seen = browser.inner_text("body")
        assert "boltzmann" in seen
        assert "undefined" not in seen


def write_clicks(path: Path) -> None:
    """Who buys: the young in Oslo, the old elsewhere; some ages are missing."""
    rng = np.random.default_rng(0)
    lines = ["age,city,bought"]
    for i in range(400):
        age, city = int(rng.integers(18, 80)), str(rng.choice(["Rome", "Oslo", "Lima"]))
        bought = "yes" if (age > 50) ^ (city == "Oslo") else "no"
        lines.append(f"{'' if i % 17 == 0 else age},{city},{bought}")
    path.write_text("\n".join(lines) + "\n")


@pytest.mark.slow
def test_a_walk_from_a_table_of_ones_own_to_a_recommendation(
    feelgood: Path, tmp_path: Path
) -> None:
    write_clicks(tmp_path / "clicks.csv")
    said = run(
        *(feelgood, "run", "clicks.csv", "--label", "bought", "linucb", "uniform"),
        *("--rounds", "400", "--seeds", "10", "--out", "mine"),
        cwd=tmp_path,
    )
    assert "clicks" in said
    assert re.search(r"linucb is best: the regret of uniform, the next, is higher by", said), said
    run(feelgood, "plot", "mine", "--out", "curves.svg", cwd=tmp_path)
    assert (tmp_path / "curves.svg").stat().st_size > 1000


def shown_by_the_readme() -> list[Snippet]:
    return [s for s in snippets(ROOT / "README.md") if s.runs]


def test_a_walk_through_the_readme(clean: Path, tmp_path: Path) -> None:
    """From top to bottom, in one folder; what it says is printed is what is printed."""
    printed = ""
    for fence in shown_by_the_readme():
        if fence.language == "python":
            printed = run(clean / "bin" / "python", "-c", fence.text, cwd=tmp_path)
            continue
        for line in fence.text.splitlines():
            program, *arguments = line.split()
            assert program == "feelgood"
            run(clean / "bin" / program, *arguments, cwd=tmp_path)
    # What README shows below the snippet; other processors round differently.
    assert (tmp_path / "regret.html").stat().st_size > 1000
    readme = (ROOT / "README.md").read_text()
    shape = r"^  (\w+) +([\d,.]+) ± ([\d,.]+)$"
    shown, got = (re.findall(shape, text, re.MULTILINE) for text in (readme, printed))
    assert [row[0] for row in shown] == [row[0] for row in got] != []
    for (_, mean, std), (_, own, _) in zip(shown, got, strict=True):
        numbers = [float(text.replace(",", "")) for text in (mean, std, own)]
        assert abs(numbers[0] - numbers[2]) < 0.5 * numbers[1]


@pytest.mark.slow
def test_the_package_carries_what_a_challenge_compares_with(feelgood: Path, tmp_path: Path) -> None:
    said = run(
        *(feelgood, "challenge", "linucb", "--testbed", "wheel-0.99", "--seeds", "2"), cwd=tmp_path
    )
    assert "linucb is better than" in said


PLAY = """
import pathlib, sys
for file in sorted(pathlib.Path('.').glob('snippet-*.py')):
    exec(compile(file.read_text(), str(file), 'exec'), {'__name__': '__main__'})
"""


@pytest.mark.slow
@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=lambda page: page.name)
def test_python_of_the_docs_runs_from_the_wheel(page: Path, clean: Path, tmp_path: Path) -> None:
    for i, snippet in enumerate(snippets(page)):
        if snippet.title is not None:
            (tmp_path / snippet.title).write_text(snippet.text)
        elif snippet.runs and snippet.language == "python":
            (tmp_path / f"snippet-{i:02}.py").write_text(snippet.text)
    run(clean / "bin" / "python", "-c", PLAY, cwd=tmp_path)


@pytest.mark.slow
def test_the_demo_of_the_readme_shows_rows_that_agree_or_differ() -> None:
    said = run("make", "demo", cwd=ROOT)
    assert "agrees" in said
    assert "cannot be run" not in said
    assert "results-demo/page.html" in said
