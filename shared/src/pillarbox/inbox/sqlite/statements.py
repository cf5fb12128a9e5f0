"""Every statement of the inbox on SQLite. Who runs them holds the file's write lock: they never meet."""

NUMBERS = "UPDATE numbers SET last = last + ? RETURNING last"
FORWARD = "UPDATE numbers SET last = max(last, ?)"
PING = "SELECT last FROM numbers"

KNOWN = "SELECT digest FROM seen WHERE bot_id = ? AND update_id = ?"
SEEN = "INSERT INTO seen (bot_id, update_id, digest, accepted_at, row_id) VALUES (?, ?, ?, ?, ?)"
LANE = "INSERT INTO lanes (bot_id, lane, head) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
UPDATE = """
INSERT INTO updates (row_id, bot_id, lane, update_id, kind, chat_id, user_id, accepted_at, sealed, body)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""

MALFORMED = "INSERT INTO malformed (bot_id, received_at, reason, body) VALUES (?, ?, ?, ?)"
MALFORMED_LIST = """
SELECT id, bot_id, received_at, reason, length(body) FROM malformed WHERE id < ? ORDER BY id DESC LIMIT ?
"""
MALFORMED_TRIM = """
DELETE FROM malformed WHERE bot_id = ?1 AND id <= (
    SELECT id FROM malformed WHERE bot_id = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2
)
"""
MALFORMED_TRIMMED = """
INSERT INTO bots (bot_id, malformed_trimmed) VALUES (?, ?)
ON CONFLICT DO UPDATE SET malformed_trimmed = malformed_trimmed + excluded.malformed_trimmed
"""

# the turn
# A run that was uncounted counts again when it ends.
HELD = "SELECT bot_id, lane, row_id, runs + (uncounted IS token), turns FROM lanes WHERE token = ?"
UNCOUNTED = """
UPDATE lanes SET runs = runs - (uncounted IS NOT token), uncounted = token WHERE token = ?
"""
TRIED = "UPDATE updates SET retries = retries + 1 WHERE row_id = ? RETURNING retries"
FSM = "SELECT version, state, data FROM fsm WHERE bot_id = ? AND key = ?"
FSM_WRITTEN = """
INSERT INTO fsm (bot_id, key, version, state, data, updated_at) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET version = excluded.version, state = excluded.state, data = excluded.data,
    updated_at = excluded.updated_at
"""
FSM_GONE = "DELETE FROM fsm WHERE bot_id = ? AND key = ?"
FRONT = """
SELECT row_id, update_id, kind, accepted_at, body FROM updates
WHERE bot_id = ? AND lane = ? ORDER BY row_id LIMIT 1
"""
HAS_MORE = "SELECT row_id FROM updates WHERE bot_id = ? AND lane = ? ORDER BY row_id LIMIT 1"
GONE = "DELETE FROM updates WHERE row_id = ?"
QUEUED = "INSERT INTO outbox (row_id, n, bot_id, lane, body) VALUES (?, ?, ?, ?, ?)"
FAILED = """
INSERT INTO failed (
    row_id, bot_id, lane, update_id, kind, chat_id, user_id, accepted_at, sealed, body, failed_at, runs, error
)
SELECT row_id, bot_id, lane, update_id, kind, chat_id, user_id, accepted_at, sealed, body, ?, ?,
    kept(?, sealed)
FROM updates WHERE row_id = ?
"""
LEASED = """
UPDATE lanes SET token = ?, lease_until = ?, row_id = ?, runs = ?, turns = ? WHERE bot_id = ? AND lane = ?
"""
BEHIND = """
UPDATE lanes SET head = ?, token = NULL, lease_until = NULL, row_id = NULL, not_before = NULL,
    runs = 0, turns = 0
WHERE bot_id = ? AND lane = ?
"""
GIVEN_BACK = """
UPDATE lanes SET token = NULL, lease_until = NULL, row_id = NULL, not_before = ?, runs = ?, turns = 0
WHERE bot_id = ? AND lane = ?
"""
EMPTY = "DELETE FROM lanes WHERE bot_id = ? AND lane = ?"
EXPIRED = """
SELECT bot_id, lane, runs FROM lanes WHERE token IS NOT NULL AND lease_until < ? ORDER BY head
"""
SPENT = """
SELECT bot_id, lane, runs FROM lanes
WHERE bot_id = ? AND token IS NULL AND not_before IS NULL AND runs >= 2 AND runs >= ?
"""
DUE = "UPDATE lanes SET not_before = NULL WHERE token IS NULL AND not_before IS NOT NULL AND not_before <= ?"
FREE = """
SELECT head, bot_id, lane, runs FROM lanes
WHERE bot_id = ? AND token IS NULL AND not_before IS NULL AND runs < 2 ORDER BY head LIMIT ?
"""
SUSPECT = """
SELECT head, bot_id, lane, runs FROM lanes
WHERE bot_id = ? AND token IS NULL AND not_before IS NULL AND runs >= 2 ORDER BY head LIMIT ?
"""
RENEW = "UPDATE lanes SET lease_until = ? WHERE token = ?"
ABANDONED = "UPDATE lanes SET lease_until = -1 WHERE token IS NOT NULL AND bot_id = ?"

TOO_MANY = """
SELECT row_id FROM failed WHERE bot_id = ? ORDER BY failed_at DESC, row_id DESC LIMIT -1 OFFSET ?
"""
FORGET_FAILED = "DELETE FROM failed WHERE row_id = ?"
FAILED_TRIMMED = """
INSERT INTO bots (bot_id, failed_trimmed) VALUES (?, ?)
ON CONFLICT DO UPDATE SET failed_trimmed = failed_trimmed + excluded.failed_trimmed
"""

# the relay
OUTBOX = "SELECT bot_id, lane, row_id, n, body FROM outbox WHERE bot_id = ? ORDER BY row_id, n LIMIT ?"
RELAYED = "DELETE FROM outbox WHERE bot_id = ? AND row_id = ? AND n = ?"

# people
NEWEST_FAILED = "SELECT max(row_id) FROM failed WHERE bot_id = ?"
MATCHING = """
    (?3 IS NULL OR failed_at >= ?3) AND (?4 IS NULL OR failed_at < ?4) AND (?5 IS NULL OR kind = ?5)
    AND (?6 IS NULL OR chat_id = ?6) AND (?7 IS NULL OR error_type(error) = ?7)
"""
ALL = "failed WHERE ?8 IS NULL"
CHOSEN = "failed INDEXED BY failed_update_id WHERE update_id IN (SELECT value FROM json_each(?8))"
_FAILED_BATCH = f"""
SELECT row_id, update_id, lane FROM %s AND bot_id = ?1 AND row_id <= ?2 AND {MATCHING}
ORDER BY row_id LIMIT ?9
"""  # noqa: S608 - both parts are constants of this module
FAILED_BATCH, FAILED_BATCH_CHOSEN = _FAILED_BATCH % ALL, _FAILED_BATCH % CHOSEN
FAILED_OF = "SELECT row_id, update_id, lane FROM failed WHERE bot_id = ? AND update_id = ? AND row_id <= ?"
WAITING = """
SELECT 1 FROM seen s CROSS JOIN updates u ON u.row_id = s.row_id
WHERE s.bot_id = ? AND s.update_id = ? LIMIT 1
"""
MOVED = "UPDATE seen SET row_id = ? WHERE bot_id = ? AND update_id = ? AND row_id = ?"
REQUEUED = """
INSERT INTO updates (row_id, bot_id, lane, update_id, kind, chat_id, user_id, accepted_at, sealed, body)
SELECT ?, bot_id, lane, update_id, kind, chat_id, user_id, ?, sealed, body FROM failed WHERE row_id = ?
"""
NOTED = "INSERT INTO audit (at, bot_id, update_id, row_id, by, action) VALUES (?, ?, ?, ?, ?, ?)"
_FAILED_LIST = f"""
SELECT row_id, bot_id, update_id, kind, lane, chat_id, user_id, accepted_at, failed_at, runs, error, body,
    sealed
FROM %s AND bot_id = ?1 AND (failed_at, row_id) < (?2, ?9) AND {MATCHING}
ORDER BY failed_at DESC, row_id DESC LIMIT ?10
"""  # noqa: S608 - both parts are constants of this module
FAILED_LIST, FAILED_LIST_CHOSEN = _FAILED_LIST % ALL, _FAILED_LIST % CHOSEN
AUDIT = """
SELECT at, update_id, by, action, user_id, old_fingerprint, new_fingerprint FROM audit
WHERE bot_id = ? AND action IN ('retry', 'discard', 'pin', 'trust', 'forget') ORDER BY id DESC LIMIT ?
"""
PINNED = "SELECT fingerprint, pinned_at FROM pins WHERE bot_id = ? AND user_id = ?"
PIN = """
INSERT INTO pins (bot_id, user_id, fingerprint, pinned_at) VALUES (?, ?, ?, ?)
ON CONFLICT DO UPDATE SET fingerprint = excluded.fingerprint, pinned_at = excluded.pinned_at, key = NULL
"""
FORGET_PIN = "DELETE FROM pins WHERE bot_id = ? AND user_id = ?"
NOTED_PIN = """
INSERT INTO audit (at, bot_id, user_id, by, action, old_fingerprint, new_fingerprint)
VALUES (?, ?, ?, ?, ?, ?, ?)
"""
BOT_KNOWN = "INSERT INTO bots (bot_id) VALUES (?) ON CONFLICT DO NOTHING"
KNOWS = """
SELECT EXISTS (SELECT 1 FROM bots WHERE bot_id = ?1) OR EXISTS (SELECT 1 FROM seen WHERE bot_id = ?1)
    OR EXISTS (SELECT 1 FROM failed WHERE bot_id = ?1) OR EXISTS (SELECT 1 FROM pins WHERE bot_id = ?1)
    OR NOT (EXISTS (SELECT 1 FROM bots) OR EXISTS (SELECT 1 FROM seen))
"""
COUNTS = """
SELECT (SELECT count(*) FROM updates WHERE bot_id = ?1),
       (SELECT count(*) FROM failed WHERE bot_id = ?1),
       coalesce((SELECT failed_trimmed FROM bots WHERE bot_id = ?1), 0),
       (SELECT count(*) FROM malformed WHERE bot_id = ?1),
       coalesce((SELECT malformed_trimmed FROM bots WHERE bot_id = ?1), 0),
       (SELECT count(*) FROM outbox WHERE bot_id = ?1)
"""

# upkeep
OLD_SEEN = """
SELECT accepted_at, bot_id, update_id, digest FROM seen
WHERE accepted_at < ? AND (accepted_at, bot_id, update_id, digest) > (?, ?, ?, ?)
ORDER BY accepted_at, bot_id, update_id, digest LIMIT ?
"""
STILL_KEPT = """
SELECT EXISTS (
    SELECT 1 FROM seen s CROSS JOIN updates u ON u.row_id = s.row_id WHERE s.bot_id = ?1 AND s.update_id = ?2
)
    OR EXISTS (SELECT 1 FROM failed WHERE bot_id = ?1 AND update_id = ?2)
"""
FORGET_SEEN = "DELETE FROM seen WHERE bot_id = ? AND update_id = ? AND digest = ?"
FAILED_BOTS = "SELECT bot_id, max(row_id) FROM failed GROUP BY bot_id"
