"""The hot statements of the inbox. The turn itself is `inbox_turn`, in the migrations.

Who locks several lanes locks them in the order (bot_id, lane COLLATE "C"), and rows of `failed` before lanes;
who cannot keep that order skips what is locked.

What PostgreSQL last saw of an idle inbox is no row, and then all plans cost it the same. So a look-up by
key is written as nothing else can run it: `bot_id = ANY (ARRAY[..])` offers an index its first column and no
order to merge by, `bot_id + 0` and `row_id + 0` offer it nothing.
"""

from pillarbox.inbox.kept import TYPE

CHECK = """
SELECT current_setting('fsync'), current_setting('full_page_writes'), current_setting('synchronous_commit'),
       to_regclass('alembic_version') IS NOT NULL
"""
REVISION = "SELECT version_num FROM alembic_version"
PING = "SELECT 1"
TRY_LOCK = "SELECT pg_try_advisory_lock(hashtextextended($1::text, 0))"

# Lanes are counted before the rows get their numbers (the gate), so a lane's numbers are in order of commit.
# The gate also brings the numbers up to now, as a restored database would give old ones out again. It is
# materialized, as PostgreSQL would count the lanes again for each row.
# Who waits for a stranger's lock holds the lanes that come before it: not for long.
ACCEPT = """
WITH came AS MATERIALIZED (
    SELECT c.bot_id, c.update_id, c.digest, c.lane COLLATE "C" AS lane, c.kind, c.chat_id, c.user_id, c.body,
           c.n, c.n = ANY ($10::bigint[]) AS sealed
    FROM unnest($1::bigint[], $2::bigint[], $3::bytea[], $4::text[], $5::text[], $6::bigint[], $7::bigint[],
                $8::bytea[])
        WITH ORDINALITY AS c(bot_id, update_id, digest, lane, kind, chat_id, user_id, body, n),
        (SELECT set_config('lock_timeout', '500ms', true)) AS patience,
        (SELECT CASE WHEN $9::boolean THEN pg_notify('pillarbox', '') END) AS hint
), fresh AS (
    INSERT INTO seen (bot_id, update_id, digest)
    SELECT bot_id, update_id, digest FROM came ORDER BY 1, 2, 3
    ON CONFLICT DO NOTHING
    RETURNING bot_id, update_id, digest
), new AS MATERIALIZED (
    SELECT c.*, (
        SELECT true FROM seen s WHERE s.bot_id = c.bot_id AND s.update_id = c.update_id LIMIT 1
    ) AS known
    FROM came c JOIN fresh USING (bot_id, update_id, digest)
), grown AS (
    INSERT INTO lanes AS l (bot_id, lane, pending)
    SELECT bot_id, lane, count(*) FROM new GROUP BY bot_id, lane ORDER BY bot_id, lane
    ON CONFLICT (bot_id, lane) DO UPDATE SET pending = l.pending + excluded.pending
    RETURNING 1
), gate AS MATERIALIZED (
    SELECT count(*), inbox_advance() FROM grown
), stored AS (
    INSERT INTO updates (bot_id, lane, update_id, kind, chat_id, user_id, sealed, body)
    SELECT bot_id, lane, update_id, kind, chat_id, user_id, sealed, body
    FROM new, gate ORDER BY n
)
SELECT n, known FROM new
"""

TURN = """
SELECT *, extract(epoch FROM now())::float8
FROM inbox_turn($1, $2, $3, $4, $5, $6, $7, $8::int4, $9::float8, $10::int4, $11::int4, $12, $13)
"""

RUN_TURN = """
SELECT *, extract(epoch FROM now())::float8
FROM inbox_run_turn($1, $2, $3, $4, $5, $6, $7, $8::int4, $9::float8, $10::int4, $11::int4, $12, $13, $14,
    $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25)
"""
READ_FSM = "SELECT * FROM inbox_read_fsm($1, $2)"
WRITE_FSM = "SELECT inbox_write_fsm($1, $2, $3, $4, $5, $6)"

RENEW = """
WITH held AS MATERIALIZED (
    SELECT bot_id, lane FROM lanes WHERE token = ANY ($1::bigint[]) ORDER BY bot_id + 0, lane FOR UPDATE
)
UPDATE lanes l SET lease_until = clock_timestamp() + make_interval(secs => $2::float8)
FROM held h WHERE l.bot_id = ANY (ARRAY[h.bot_id]) AND l.lane = h.lane
RETURNING l.token, true
"""
# With every token whose lane is there, false where somebody else has locked it.
RENEW_UNLOCKED = """
WITH held AS MATERIALIZED (
    SELECT bot_id, lane FROM lanes WHERE token = ANY ($1::bigint[])
    ORDER BY bot_id + 0, lane FOR UPDATE SKIP LOCKED
), renewed AS (
    UPDATE lanes l SET lease_until = clock_timestamp() + make_interval(secs => $2::float8)
    FROM held h WHERE l.bot_id = ANY (ARRAY[h.bot_id]) AND l.lane = h.lane
    RETURNING l.token
)
SELECT token, true FROM renewed UNION ALL
SELECT l.token, false FROM lanes l
WHERE l.token = ANY ($1::bigint[]) AND NOT EXISTS (SELECT 1 FROM renewed r WHERE r.token = l.token)
"""
# A plan that reads all of `lanes`, made while there were few, would be kept when there are many.
RENEW_SETTINGS = """
SET lock_timeout = '500ms'; SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off
"""

# Commits that notify come one after the other. So a hint stands outside every transaction with data, but for
# that of a lone accept, and its own commit is not waited for.
NOTIFY = "SELECT set_config('synchronous_commit', 'off', true), pg_notify('pillarbox', '')"
LISTEN = "LISTEN pillarbox"

RELAY = "SELECT * FROM inbox_relay($1::int4, $2::bigint)"

MATCHING = f"""
    ($5::timestamptz IS NULL OR failed_at >= $5) AND ($6::timestamptz IS NULL OR failed_at < $6)
    AND ($7::text IS NULL OR kind = $7) AND ($8::bigint IS NULL OR chat_id = $8)
    AND ($9::text IS NULL OR coalesce(substring(error, '{TYPE}'), error) = $9)
"""

# $3: not past this row, so that a batch never begins again with what it has. Rows that another call takes
# away while this one waits for their locks do not count for the limit.
FAILED_BATCH = f"""
    SELECT row_id FROM failed
    WHERE bot_id = $1::bigint AND $2::bigint[] IS NULL AND row_id <= $3::bigint AND {MATCHING}
    ORDER BY row_id LIMIT 500 FOR UPDATE
"""  # noqa: S608 - both parts are constants of this module
# Looked up by their ids: the sums keep the planner from indexes of all rows.
FAILED_BATCH_OF = f"""
    SELECT row_id FROM failed
    WHERE bot_id + 0 = $1::bigint AND update_id = ANY ($2::bigint[]) AND row_id + 0 <= $3::bigint
        AND {MATCHING}
    ORDER BY row_id + 0 LIMIT 500 FOR UPDATE
"""  # noqa: S608 - both parts are constants of this module

NEWEST_FAILED = "SELECT max(row_id) FROM failed WHERE bot_id = $1::bigint"

_REQUEUE = """
WITH picked AS MATERIALIZED (%s), back AS (
    DELETE FROM failed f USING picked p WHERE f.row_id = ANY (ARRAY[p.row_id])
    RETURNING f.row_id, f.bot_id, f.update_id, f.lane, f.kind, f.chat_id, f.user_id, f.sealed, f.body
), grown AS (
    INSERT INTO lanes AS l (bot_id, lane, pending)
    SELECT bot_id, lane, count(*) FROM back GROUP BY bot_id, lane ORDER BY bot_id, lane
    ON CONFLICT (bot_id, lane) DO UPDATE SET pending = l.pending + excluded.pending
    RETURNING 1
), gate AS MATERIALIZED (
    SELECT count(*), inbox_advance() FROM grown
), stored AS (
    INSERT INTO updates (bot_id, lane, update_id, kind, chat_id, user_id, sealed, body)
    SELECT bot_id, lane, update_id, kind, chat_id, user_id, sealed, body
    FROM back, gate ORDER BY row_id
), noted AS (
    INSERT INTO audit (bot_id, update_id, row_id, by, action)
    SELECT bot_id, update_id, row_id, $4::text, 'retry' FROM back ORDER BY row_id
)
SELECT update_id FROM back
"""
REQUEUE, REQUEUE_OF = _REQUEUE % FAILED_BATCH, _REQUEUE % FAILED_BATCH_OF

_DISCARD = """
WITH picked AS MATERIALIZED (%s), dropped AS (
    DELETE FROM failed f USING picked p WHERE f.row_id = ANY (ARRAY[p.row_id])
    RETURNING f.row_id, f.bot_id, f.update_id
), noted AS (
    INSERT INTO audit (bot_id, update_id, row_id, by, action)
    SELECT bot_id, update_id, row_id, $4::text, 'discard' FROM dropped ORDER BY row_id
)
SELECT update_id FROM dropped
"""
DISCARD, DISCARD_OF = _DISCARD % FAILED_BATCH, _DISCARD % FAILED_BATCH_OF

WAITING = (
    "SELECT DISTINCT update_id FROM updates WHERE bot_id + 0 = $1::bigint AND update_id = ANY ($2::bigint[])"
)

MALFORMED = """
INSERT INTO malformed (bot_id, reason, body) VALUES ($1::bigint, $2::text, $3::bytea)
"""

MALFORMED_TRIM = """
WITH dropped AS (
    DELETE FROM malformed WHERE bot_id = $1::bigint AND id <= (
        SELECT id FROM malformed WHERE bot_id = $1 ORDER BY id DESC OFFSET $2::int4 LIMIT 1
    )
    RETURNING 1
)
INSERT INTO bots AS b (bot_id, malformed_trimmed)
SELECT $1, count(*) FROM dropped HAVING count(*) > 0
ON CONFLICT (bot_id) DO UPDATE SET malformed_trimmed = b.malformed_trimmed + excluded.malformed_trimmed
"""

# What is pending, claimed or failed stays known. ($2, $3, $4) is where the batch before ended.
SWEEP_SEEN = """
WITH old AS MATERIALIZED (
    SELECT bot_id, update_id, digest, accepted_at FROM seen
    WHERE accepted_at < now() - make_interval(secs => $1::float8)
      AND accepted_at >= $2::timestamptz AND (accepted_at, bot_id, update_id) > ($2, $3::bigint, $4::bigint)
    ORDER BY accepted_at, bot_id, update_id LIMIT $5::int4
    FOR UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM seen s USING old o
    WHERE s.bot_id = ANY (ARRAY[o.bot_id]) AND s.update_id = o.update_id AND s.digest = o.digest
      AND NOT EXISTS (SELECT 1 FROM updates u WHERE u.bot_id + 0 = o.bot_id AND u.update_id = o.update_id)
      AND NOT EXISTS (
          SELECT 1 FROM failed f WHERE f.bot_id + 0 = o.bot_id AND f.update_id = ANY (ARRAY[o.update_id])
      )
)
SELECT accepted_at::text, bot_id, update_id FROM old ORDER BY accepted_at, bot_id, update_id
"""

SWEEP_FAILED = """
SELECT inbox_trim_failed(ARRAY(SELECT max(row_id) FROM failed GROUP BY bot_id), $1::int4)
"""

# A batch reads no more than it takes: in the order of the index, and each row's update by its key.
SWEEP_TURN = """
SELECT pg_try_advisory_xact_lock($1::bigint)
FROM (
    SELECT count(set_config(name, 'off', true)) AS set
    FROM unnest('{enable_sort, enable_seqscan, enable_hashjoin, enable_mergejoin}'::text[]) AS name
) AS planner WHERE set = 4
"""

_FAILED = f"""
SELECT row_id, update_id, kind, lane, chat_id, user_id, accepted_at, failed_at, runs, error, body, sealed
FROM %s
WHERE bot_id = $1::bigint AND (failed_at, row_id) < ($2::timestamptz, $3::bigint) AND {MATCHING}
ORDER BY failed_at DESC, row_id DESC LIMIT $4::int4
"""  # noqa: S608 - both parts are constants of this module
FAILED = _FAILED % "failed"
FAILED_OF = f"""
WITH chosen AS MATERIALIZED (
    SELECT * FROM failed WHERE bot_id + 0 = $1::bigint AND update_id = ANY ($10::bigint[])
) {_FAILED % "chosen"}
"""  # noqa: S608 - both parts are constants of this module

AUDIT = """
SELECT at, update_id, by, action, user_id, old_fingerprint, new_fingerprint FROM audit
WHERE bot_id = $1::bigint AND action IN ('retry', 'discard', 'pin', 'trust', 'forget')
ORDER BY id DESC LIMIT $2::int4
"""

KNOWS = """
SELECT EXISTS (SELECT 1 FROM bots WHERE bot_id = $1::bigint)
    OR EXISTS (SELECT 1 FROM seen WHERE bot_id = $1) OR EXISTS (SELECT 1 FROM failed WHERE bot_id = $1)
    OR EXISTS (SELECT 1 FROM pins WHERE bot_id = $1)
    OR NOT (EXISTS (SELECT 1 FROM bots) OR EXISTS (SELECT 1 FROM seen))
"""
BOT_KNOWN = "INSERT INTO bots (bot_id) SELECT unnest($1::bigint[]) ON CONFLICT DO NOTHING"

PINNED = "SELECT fingerprint, pinned_at FROM pins WHERE bot_id = $1::bigint AND user_id = $2::bigint"

# Whoever comes first: an update that changes nothing is how to read a row that another has just committed.
PIN = """
WITH had AS MATERIALIZED (
    SELECT fingerprint, pinned_at FROM pins WHERE bot_id = $1::bigint AND user_id = $2::bigint
), put AS (
    INSERT INTO pins AS p (bot_id, user_id, fingerprint)
    SELECT $1, $2, $3::text WHERE NOT EXISTS (SELECT 1 FROM had)
    ON CONFLICT (bot_id, user_id) DO UPDATE SET fingerprint = p.fingerprint
    RETURNING fingerprint, pinned_at, xmax = 0 AS first
), noted AS (
    INSERT INTO audit (bot_id, user_id, by, action, new_fingerprint)
    SELECT $1, $2, $4::text, 'pin', fingerprint FROM put WHERE first
)
SELECT fingerprint, pinned_at FROM had UNION ALL SELECT fingerprint, pinned_at FROM put
"""

TRUST = """
WITH had AS MATERIALIZED (
    SELECT fingerprint FROM pins WHERE bot_id = $1::bigint AND user_id = $2::bigint FOR UPDATE
), put AS (
    INSERT INTO pins (bot_id, user_id, fingerprint)
    SELECT $1, $2, $3::text FROM (SELECT count(*) FROM had) AS gate
    ON CONFLICT (bot_id, user_id) DO UPDATE
    SET fingerprint = excluded.fingerprint, pinned_at = excluded.pinned_at, key = NULL
    RETURNING fingerprint, pinned_at
), noted AS (
    INSERT INTO audit (bot_id, user_id, by, action, old_fingerprint, new_fingerprint)
    SELECT $1, $2, $4::text, 'trust', (SELECT fingerprint FROM had), fingerprint FROM put
)
SELECT fingerprint, pinned_at FROM put
"""

FORGET = """
WITH gone AS (
    DELETE FROM pins WHERE bot_id = $1::bigint AND user_id = $2::bigint RETURNING fingerprint, pinned_at
), noted AS (
    INSERT INTO audit (bot_id, user_id, by, action, old_fingerprint)
    SELECT $1, $2, $3::text, 'forget', fingerprint FROM gone
)
SELECT fingerprint, pinned_at FROM gone
"""

COUNTS = """
SELECT (SELECT coalesce(sum(pending), 0)::bigint FROM lanes WHERE bot_id = $1::bigint),
       (SELECT count(*) FROM failed WHERE bot_id = $1),
       coalesce((SELECT failed_trimmed FROM bots WHERE bot_id = $1), 0),
       (SELECT count(*) FROM malformed WHERE bot_id = $1),
       coalesce((SELECT malformed_trimmed FROM bots WHERE bot_id = $1), 0),
       (SELECT count(*) FROM outbox WHERE bot_id = $1)
"""
