"""`make bench`: every figure beside its yardstick, in one run. The last line is one of JSON.

Each bench is a module of its own that ends with one line of JSON; `reached` says whether it met its bar.
"""

import argparse
import json
import subprocess
import sys

BENCHES = (
    "accept",
    "dispatch",
    "send",
    "reply",
    "sqlite",
    "engine",
    "backlog",
    "failover",
    "sweep",
    "simulator",
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("only", nargs="*", help=" ".join(BENCHES))
    parser.add_argument(
        "--short", action="store_true", help="one round: does it run at all, and about how fast"
    )
    arguments = parser.parse_args()
    unknown = set(arguments.only) - set(BENCHES)
    if unknown:
        parser.error(f"no bench {', '.join(sorted(unknown))}; there are {', '.join(BENCHES)}")
    results = {name: _run(name, arguments.short) for name in arguments.only or BENCHES}
    print(json.dumps(results))
    return 0 if all(results.values()) else 1


def _run(name: str, short: bool) -> dict[str, object]:
    print(f"== {name}", flush=True)
    command = [sys.executable, "-m", f"tests.bench.{name}", *(["--short"] if short else [])]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    print(done.stdout, end="", flush=True)
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        print(f"{name} ended with exit code {done.returncode}", file=sys.stderr)
        return {}
    return dict(json.loads(lines[-1]))


if __name__ == "__main__":
    sys.exit(main())
