"""`make faults SEEDS=1,2,3 STORE=sqlite RECEIVE=polling`: all is killed under load, and the ledger counted.

The last line is one of JSON: lost, doubled, reordered, … over all seeds. Exit code 1: a promise broke.
"""

import argparse
import asyncio
import json
import shutil
import sys
import tempfile
from pathlib import Path

from tests.faults.load import Load
from tests.faults.run import run
from tests.faults.verdict import Verdict
from tests.support.sending import OUT_OF_THE_WAY
from tests.support.stack import running


def main() -> int:
    parser = argparse.ArgumentParser(prog="make faults", description=__doc__)
    parser.add_argument("--seeds", default="1", help="comma between: 1,2,3")
    parser.add_argument(
        "--trouble", action="store_true", help="13,000 updates, 4 of which kill their process"
    )
    parser.add_argument("--seconds", type=float, default=30.0, help="how long the load lasts")
    parser.add_argument("--store", choices=["postgres", "sqlite"], default="postgres")
    parser.add_argument("--receive", choices=["webhook", "polling"], default="webhook")
    arguments = parser.parse_args()
    store, receive = arguments.store, arguments.receive
    loads = [_load(int(seed), arguments.seconds, arguments.trouble) for seed in arguments.seeds.split(",")]
    verdicts = {load.seed: _one(load, store, receive) for load in loads}
    print(json.dumps({"store": store, "receive": receive, **_sum(verdicts)}))
    return 0 if all(verdict.good for verdict in verdicts.values()) else 1


def _load(seed: int, seconds: float, trouble: bool) -> Load:
    if trouble:
        return Load(seed, updates=13_000, chats=1000, seconds=3 * seconds, failing=40, killers=4)
    return Load(seed, seconds=seconds)


def _one(load: Load, store: str, receive: str) -> Verdict:
    seed = load.seed
    folder = Path(tempfile.mkdtemp(prefix="pillarbox-faults-"))
    settings = {
        "HANDLERS": "tests.faults.bot",
        "FAULTS_JOURNAL": str(folder / "journal"),
        "LEASE": "2",
        "CONCURRENCY": "100",
        "RECEIVE": receive,
        "LOG_LEVEL": "warning",
        **OUT_OF_THE_WAY,
    }
    pollers = 2 if receive == "polling" else 1  # one asks, the other stands by
    counts = {"ingest": pollers, "dispatcher": 3 if load.killers else 2, "sender": 2, "admin": 0}
    with running(folder, settings, store=store, **counts) as stack:
        verdict = asyncio.run(run(stack, load))
    print(f"seed {seed}: {json.dumps(_told(verdict))}")
    if verdict.good:
        shutil.rmtree(folder)
    else:
        print(f"seed {seed}: logs and journal are kept in {folder}", file=sys.stderr)
    return verdict


def _told(verdict: Verdict) -> dict[str, object]:
    return {
        "lost": [_name(key) for key in verdict.lost],
        "dead": [_name(key) for key in verdict.dead],
        "doubled": {_name(key): count for key, count in verdict.doubled.items()},
        "unexplained": [_name(key) for key in verdict.unexplained],
        "reordered": [_name(key) for key in verdict.reordered],
        "overlaps": verdict.overlaps,
        "held": verdict.held,
        "reruns": verdict.reruns,
        "misfiled": verdict.misfiled,
        "deaths": verdict.deaths,
    }


def _name(key: tuple[str, int, int]) -> str:
    return f"{key[0]}{key[1]}:{key[2]}"


def _sum(verdicts: dict[int, Verdict]) -> dict[str, object]:
    return {
        "seeds": list(verdicts),
        "lost": sum(len(v.lost) for v in verdicts.values()),
        "doubled": sum(len(v.doubled) for v in verdicts.values()),
        "unexplained": sum(len(v.unexplained) for v in verdicts.values()),
        "reordered": sum(len(v.reordered) for v in verdicts.values()),
        "overlaps": sum(len(v.overlaps) for v in verdicts.values()),
        "misfiled": sum(len(v.misfiled) for v in verdicts.values()),
        "deaths": sum(v.deaths for v in verdicts.values()),
        "dead": sum(len(v.dead) for v in verdicts.values()),
        "held": sum(v.held for v in verdicts.values()),
        "reruns": sum(v.reruns for v in verdicts.values()),
        "good": all(v.good for v in verdicts.values()),
    }


if __name__ == "__main__":
    sys.exit(main())
