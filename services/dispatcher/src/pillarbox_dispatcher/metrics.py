from prometheus_client import Counter, Gauge, Histogram

from pillarbox_dispatcher.tallies import Seconds, Tally

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)

updates = Tally("pillarbox_dispatcher_updates", "Runs that ended, by what came of them", ("bot", "outcome"))
handler_seconds = Seconds("pillarbox_dispatcher_handler_seconds", "Seconds of one run", SECONDS)
start_age_seconds = Seconds(
    "pillarbox_dispatcher_start_age_seconds",
    "Seconds from an update's acceptance to the start of its run",
    (*SECONDS, 3600, 86400),
)
turn_seconds = Histogram("pillarbox_dispatcher_turn_seconds", "Seconds of one turn", buckets=SECONDS)
lanes_running = Gauge("pillarbox_dispatcher_lanes_running", "Lanes whose handlers run now")
lost_leases = Counter("pillarbox_dispatcher_lost_leases", "Leases that ended before their run did")
stale_states = Counter(
    "pillarbox_dispatcher_stale_states", "Runs that run again: another lane had written their FSM state"
)
given_up = Counter("pillarbox_dispatcher_given_up", "Updates that failed after RETRY_TIMES retries")
relayed = Counter("pillarbox_dispatcher_relayed", "Rows of outboxes that were filed for the sender")
relay_repeats = Counter(
    "pillarbox_dispatcher_relay_repeats", "Rows of outboxes that the queue had already, under the same id"
)
mistakes = Counter(
    "pillarbox_dispatcher_mistakes", "Calls that handlers dropped, results that cannot be sent", ["kind"]
)
