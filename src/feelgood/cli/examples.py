"""One example per command, for its help text and the page of commands."""

EXAMPLES = {
    "list": "feelgood list lmcts",
    "doctor": "feelgood doctor",
    "run": "feelgood run linear-20 lints linucb --rounds 2k --seeds 10 --page page.html",
    "challenge": "feelgood challenge mine.py --testbed linear-20",
    "posterior": "feelgood posterior lints lmcts --testbed linear-20 --rounds 200",
    "calibrate": "feelgood calibrate lmcts --simulations 100",
    "report": "feelgood report results --open",
    "plot": "feelgood plot results --out curves.pdf --agents lints,lmcts",
    "reproduce": "feelgood reproduce main --testbed linear-20 --agents lints,lmcts",
    "data list": "feelgood data list",
    "data fetch": "feelgood data fetch mushroom",
    "data path": "feelgood data path mushroom",
    "data verify": "feelgood data verify",
    "study run": "feelgood study run study.toml --workers 2",
    "study show": "feelgood study show study.toml",
    "study export": "feelgood study export study.toml --format csv",
}
