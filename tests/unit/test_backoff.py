from pillarbox.backoff import Backoff


def test_delays_grow_to_the_most_and_start_again() -> None:
    backoff = Backoff(first=1, most=8)
    delays = [backoff.delay() for _ in range(6)]
    for delay, full in zip(delays, [1, 2, 4, 8, 8, 8], strict=True):
        assert full / 2 <= delay <= full
    backoff.reset()
    assert backoff.delay() <= 1
