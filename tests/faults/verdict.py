"""What the ledger and the journal say: lost, doubled, reordered, and two at a time in one lane."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

MARKER = re.compile(r"#([a-z]+)(-?\d+):(\d+)\Z")
Key = tuple[str, int, int]
"""Stream, chat, number."""


@dataclass(slots=True)
class Verdict:
    """`doubled` holds every marker seen more than once; `unexplained` those that no killed sender held."""

    lost: list[Key] = field(default_factory=list)
    dead: list[Key] = field(default_factory=list)
    doubled: dict[Key, int] = field(default_factory=dict)
    unexplained: list[Key] = field(default_factory=list)
    reordered: list[Key] = field(default_factory=list)
    overlaps: list[tuple[int, int, int]] = field(default_factory=list)
    reruns: int = 0
    """Runs of a handler beyond the first of its update: how often the chaos hit one."""
    misfiled: list[tuple[int, int]] = field(default_factory=list)
    """Chat and number of what is on the failed list and should not be, or the other way round."""
    deaths: int = 0
    """How often an update ended the process that handled it."""
    held: int = 0
    """Messages that killed senders had in their hands."""

    @property
    def good(self) -> bool:
        most = max(self.doubled.values(), default=0)
        wrong = self.lost or self.reordered or self.unexplained or self.overlaps or self.misfiled
        return not wrong and most <= 2


def key_of(text: str) -> Key | None:
    match = MARKER.match(text)
    return (match[1], int(match[2]), int(match[3])) if match else None


def judge(expected: Iterable[Key], sent: list[Key], dead: set[Key], held: set[Key]) -> Verdict:
    """`sent` is what took effect, in the order of arrival; `held` what killed senders had in their hands."""
    seen = Counter(sent)
    verdict = Verdict()
    for key in expected:
        if seen[key] == 0:
            (verdict.dead if key in dead else verdict.lost).append(key)
    verdict.doubled = {key: count for key, count in seen.items() if count > 1}
    verdict.unexplained = [key for key in verdict.doubled if key not in held]
    verdict.reordered = _reordered(sent)
    verdict.held = len(held)
    return verdict


def _reordered(sent: list[Key]) -> list[Key]:
    latest: dict[tuple[str, int], int] = {}
    out = []
    for stream, chat, number in sent:
        if number < latest.get((stream, chat), 0):
            out.append((stream, chat, number))
        latest[stream, chat] = max(number, latest.get((stream, chat), 0))
    return out


def reruns(journal: Iterable[str]) -> int:
    """How many runs were started beyond one for each update."""
    starts = [line.split()[3:] for line in journal if line.startswith("start")]
    return len(starts) - len({tuple(start) for start in starts})


@dataclass(frozen=True, slots=True)
class Span:
    start: int
    end: int
    number: int


def overlaps(journal: Iterable[str], killed_at: Mapping[int, int]) -> list[tuple[int, int, int]]:
    """Chat and numbers of two runs that were in one lane at a time.

    A run without an end lasted until its process was killed: `killed_at` has the monotonic ns of each pid.
    """
    spans = _spans(journal, killed_at)
    out = []
    for chat, runs in spans.items():
        runs.sort(key=lambda span: span.start)
        out += [
            (chat, before.number, after.number)
            for before, after in pairwise(runs)
            if after.start < before.end
        ]
    return out


def _spans(journal: Iterable[str], killed_at: Mapping[int, int]) -> dict[int, list[Span]]:
    open_runs: dict[tuple[int, int, int], int] = {}
    spans: dict[int, list[Span]] = defaultdict(list)
    for line in journal:
        what, at, pid, chat, number = line.split()
        run = (int(pid), int(chat), int(number))
        if what == "start":
            open_runs[run] = int(at)
        else:
            spans[int(chat)].append(Span(open_runs.pop(run), int(at), int(number)))
    for (process, lane, run_of), start in open_runs.items():
        spans[lane].append(Span(start, killed_at.get(process, start), run_of))
    return spans
