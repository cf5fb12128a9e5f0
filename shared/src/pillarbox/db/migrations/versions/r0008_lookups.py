"""Looked up by key, and never read from end to end, also where PostgreSQL takes the table for empty.

A plan for no row costs the same whichever index it reads, and whether it reads all of it. So what must be a
look-up by key is written as nothing else can run it: `bot_id = ANY (ARRAY[..])` offers an index its first
column, and no order to merge by; `bot_id + 0` and `row_id + 0` offer it nothing.
"""

from alembic import op

from pillarbox.db.migrations.editing import edit

revision = "0008"
down_revision = "0007"

TURN = (
    (
        "JOIN lanes l ON l.token = e.token\n            ORDER BY l.bot_id, l.lane",
        "JOIN lanes l ON l.token = e.token\n            ORDER BY l.bot_id + 0, l.lane",
    ),
    (
        "l.token <> ALL (_tokens)\n            ORDER BY l.bot_id,",
        "l.token <> ALL (_tokens)\n            ORDER BY l.bot_id + 0,",
    ),
    (
        "l.runs >= _max_runs\n            ORDER BY l.bot_id,",
        "l.runs >= _max_runs\n            ORDER BY l.bot_id + 0,",
    ),
    ("WHERE l.bot_id = due.bot_id AND", "WHERE l.bot_id = ANY (ARRAY[due.bot_id]) AND"),
    ("o.row_id < u.row_id", "o.row_id + 0 < u.row_id"),
    ("WHERE l.bot_id = n.bot_id AND", "WHERE l.bot_id = ANY (ARRAY[n.bot_id]) AND"),
    ("WHERE l.bot_id = e.bot_id AND", "WHERE l.bot_id = ANY (ARRAY[e.bot_id]) AND"),
    ("FROM one o WHERE l.bot_id = o.bot_id AND", "FROM one o WHERE l.bot_id = ANY (ARRAY[o.bot_id]) AND"),
    ("FROM open o WHERE l.bot_id = o.bot_id AND", "FROM open o WHERE l.bot_id = ANY (ARRAY[o.bot_id]) AND"),
    ("WHERE l.bot_id = t.bot_id AND", "WHERE l.bot_id = ANY (ARRAY[t.bot_id]) AND"),
)
RUN_TURN = (
    ("ORDER BY l.bot_id, l.lane", "ORDER BY l.bot_id + 0, l.lane"),
    (
        "LEFT JOIN fsm f ON f.bot_id = d.r_bot_id AND",
        "LEFT JOIN fsm f ON f.bot_id = ANY (ARRAY[d.r_bot_id]) AND",
    ),
)
WRITE_FSM = (
    ("f.bot_id = u.bot_id AND", "f.bot_id = ANY (ARRAY[u.bot_id]) AND"),
    ("ORDER BY f.bot_id, f.key", "ORDER BY f.bot_id + 0, f.key"),
    (
        "WHERE f.bot_id = w.bot_id AND f.key = w.key AND w.writer",
        "WHERE f.bot_id = ANY (ARRAY[w.bot_id]) AND f.key = w.key AND w.writer",
    ),
    (
        "WHERE f.bot_id = w.bot_id AND f.key = w.key\n",
        "WHERE f.bot_id = ANY (ARRAY[w.bot_id]) AND f.key = w.key\n",
    ),
)
READ_FSM = (("f.bot_id = k.bot_id AND", "f.bot_id = ANY (ARRAY[k.bot_id]) AND"),)
# What the first statement has locked stays in its place. A lane's rows up to one are a part of `outbox_lane`,
# and of no other index.
RELAY = (
    ("    row_ids bigint[];\n", "    places  tid[];\n    row_ids bigint[];\n"),
    ("array_agg(l.row_id), array_agg(l.n) INTO row_ids, ns\n", "array_agg(l.place) INTO places\n"),
    ("SELECT s.row_id, s.n, sum(s.size)", "SELECT s.place, sum(s.size)"),
    (
        "SELECT o.row_id, o.n, octet_length(o.body)",
        "SELECT o.ctid AS place, o.row_id, o.n, octet_length(o.body)",
    ),
    ("IF row_ids IS NULL", "IF places IS NULL"),
    (
        "SELECT o.row_id, o.n, o.bot_id, o.lane\n"
        "        FROM unnest(row_ids, ns) AS t(row_id, n) JOIN outbox o USING (row_id, n)",
        "SELECT o.row_id, o.n, o.bot_id, o.lane, o.ctid AS place\n"
        "        FROM unnest(places) AS t(place) JOIN outbox o ON o.ctid = t.place",
    ),
    (
        "JOIN outbox o ON o.bot_id = r.bot_id AND o.lane = r.lane AND o.row_id <= r.row_id",
        "CROSS JOIN LATERAL (\n"
        "            SELECT * FROM outbox f WHERE f.bot_id = r.bot_id AND f.lane = r.lane\n"
        "              AND (f.bot_id, f.lane, f.row_id) <= (r.bot_id, r.lane, r.row_id) OFFSET 0\n"
        "        ) o",
    ),
    ("WHERE o.row_id = t.row_id AND o.n = t.n AND NOT", "WHERE o.ctid = t.place AND NOT"),
    ("    places  tid[];\n    row_ids bigint[];\n    ns      integer[];\n", "    places tid[];\n"),
)
EDITS = {
    "inbox_turn": TURN,
    "inbox_run_turn": RUN_TURN,
    "inbox_write_fsm": WRITE_FSM,
    "inbox_read_fsm": READ_FSM,
    "inbox_relay": RELAY,
}


def upgrade() -> None:
    op.drop_index("failed_update_id", "failed")
    op.create_index("failed_update_id", "failed", ["update_id"])
    for function, edits in EDITS.items():
        for old, new in edits:
            edit(function, old, new)


def downgrade() -> None:
    for function, edits in EDITS.items():
        for old, new in reversed(edits):
            edit(function, new, old)
    op.drop_index("failed_update_id", "failed")
    op.create_index("failed_update_id", "failed", ["bot_id", "update_id"])
