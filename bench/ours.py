"""Plays one agent of ours several times in one process and prints its times and regrets.

    python bench/ours.py linear-20 fglmcts --rounds 1000 --set lam=0.5

The first call compiles, and says how long that took. Every later call finds its programs compiled,
and its CPU seconds are those of a run: with one thread on one core that is the wall-clock time of
an undisturbed core, as it is for the peer.
"""

import argparse
import json
import time
from typing import Any

import feelgood


def play(args: argparse.Namespace) -> dict[str, Any]:
    """CPU seconds of each call but the first, the seconds of compiling, and the final regrets."""
    values = dict(one.split("=", 1) for one in args.set)
    seconds, compile_s = [], 0.0
    for call in range(args.repeats + 1):
        start = time.process_time()
        [result] = feelgood.run(
            args.testbed,
            [args.agent],
            rounds=args.rounds,
            seeds=args.seeds,
            preset=args.preset or None,
            settings={args.agent: {name: number_or_word(text) for name, text in values.items()}},
        )
        if call:
            seconds.append(time.process_time() - start)
        else:
            compile_s = result.compile_s
    return {
        "seconds_each": seconds,
        "compile_s": compile_s,
        "final_regret": [float(regret) for regret in result.final_regret],
    }


def number_or_word(text: str) -> float | str:
    """A setting's value."""
    try:
        return float(text)
    except ValueError:
        return text


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("testbed")
    parser.add_argument("agent")
    parser.add_argument("--rounds", type=int, default=10_000)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=1, help="calls after the first")
    parser.add_argument("--preset", default="paper", help="'' for none")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    print(json.dumps(play(parser.parse_args())))


if __name__ == "__main__":
    main()
