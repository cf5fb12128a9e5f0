-- A restored database gives its numbers out again, and Redis still knows the ids of messages that hold them. So
-- each accept first brings the numbers up to the microseconds of now, which no number of before has reached.
--
-- Never backwards: one at a time, and only from so far behind that what others take meanwhile is passed as well.
-- Its owner's right is needed: who only works in the database may not set a sequence.
DO $do$
BEGIN
    EXECUTE format($create$
CREATE FUNCTION inbox_advance() RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $advance$
DECLARE
    behind CONSTANT bigint := 100000;
BEGIN
    IF (SELECT s.last_value FROM %1$s s) >= extract(epoch FROM clock_timestamp()) * 1000000 - behind THEN
        RETURN;
    END IF;
    -- Whoever holds it waits for nothing more before its commit.
    PERFORM pg_advisory_xact_lock(5785239086730335811);  -- "PILLADVC"
    IF (SELECT s.last_value FROM %1$s s) < extract(epoch FROM clock_timestamp()) * 1000000 - behind THEN
        PERFORM setval(%2$L, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint);
    END IF;
END
$advance$
$create$, pg_get_serial_sequence('updates', 'row_id'), pg_get_serial_sequence('updates', 'row_id'));
END
$do$;

-- Somebody else's open transaction on a row must not keep the other ends of a turn: the caller looks for the one
-- that waits.
ALTER FUNCTION inbox_turn SET lock_timeout = '500ms';
ALTER FUNCTION inbox_run_turn SET lock_timeout = '500ms';

-- Takes the oldest outbox rows that no other relay has, in order inside a lane: `_limit` rows and `_bytes` of bodies at
-- most, and in any case one row. They are gone when the caller commits. The second statement sees what other relays
-- have committed since the first. What stands behind a row that is not ours stays, and comes without its body.
CREATE FUNCTION inbox_relay(_limit integer, _bytes bigint)
RETURNS TABLE (r_bot_id bigint, r_lane text, r_row_id bigint, r_n integer, r_body bytea)
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
AS $relay$
DECLARE
    row_ids bigint[];
    ns      integer[];
BEGIN
    SELECT array_agg(l.row_id), array_agg(l.n) INTO row_ids, ns
    FROM (
        SELECT s.row_id, s.n, sum(s.size) OVER (ORDER BY s.row_id, s.n) - s.size AS before
        FROM (
            SELECT o.row_id, o.n, octet_length(o.body) AS size FROM outbox o
            ORDER BY o.row_id, o.n LIMIT _limit FOR UPDATE SKIP LOCKED
        ) s
    ) l
    WHERE l.before < _bytes;
    IF row_ids IS NULL THEN
        RETURN;
    END IF;
    RETURN QUERY
    WITH ours AS MATERIALIZED (
        SELECT o.row_id, o.n, o.bot_id, o.lane
        FROM unnest(row_ids, ns) AS t(row_id, n) JOIN outbox o USING (row_id, n)
    ), reach AS MATERIALIZED (
        SELECT w.bot_id, w.lane, max(w.row_id) AS row_id FROM ours w GROUP BY w.bot_id, w.lane
    ), missing AS MATERIALIZED (
        SELECT o.bot_id, o.lane, min(ARRAY[o.row_id, o.n]) AS lowest
        FROM reach r
        JOIN outbox o ON o.bot_id = r.bot_id AND o.lane = r.lane AND o.row_id <= r.row_id
        LEFT JOIN ours m ON m.row_id = o.row_id AND m.n = o.n
        WHERE m.row_id IS NULL
        GROUP BY o.bot_id, o.lane
    ), taken AS (
        DELETE FROM outbox o USING ours t
        WHERE o.row_id = t.row_id AND o.n = t.n AND NOT EXISTS (
            SELECT 1 FROM missing m
            WHERE m.bot_id = t.bot_id AND m.lane = t.lane AND m.lowest < ARRAY[t.row_id, t.n::bigint]
        )
        RETURNING o.row_id, o.n, o.body
    )
    SELECT w.bot_id, w.lane, w.row_id, w.n, k.body
    FROM ours w LEFT JOIN taken k ON k.row_id = w.row_id AND k.n = w.n
    ORDER BY w.row_id, w.n;
END
$relay$;
