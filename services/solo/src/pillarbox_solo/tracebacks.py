"""A traceback that a service writes at every start is shown once."""

MOST = 100


class Tracebacks:
    """Of one service, over all its lives: a traceback that was shown already is its last line alone."""

    def __init__(self) -> None:
        self._seen: set[tuple[str, ...]] = set()
        self._held: list[str] = []

    def feed(self, line: str) -> list[str]:
        """What is to be shown now that this line came."""
        if self._held and line.startswith((" ", "\t")):
            self._held.append(line)
            return []
        if line.startswith("Traceback (most recent call last)"):
            begun, self._held = self._held, [line]
            return begun
        if self._held:
            return self._block(line)
        return [line]

    def end(self) -> list[str]:
        """What is still held when the process has ended."""
        rest, self._held = self._held, []
        return rest

    def _block(self, last: str) -> list[str]:
        block, self._held = (*self._held, last), []
        if block in self._seen:
            return [last]
        if len(self._seen) < MOST:
            self._seen.add(block)
        return list(block)
