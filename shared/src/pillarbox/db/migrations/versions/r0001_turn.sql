-- One turn of a dispatcher: ends runs, then leases the next updates. One call, one commit.
--
-- `_ends`: 0 finish, 1 fail, 2 release, 3 later; here also 4, a lease that ran out.
-- `r_what`: 0 a lease, 1 a suspect's lease, 2 a token that was not held, 3 how many were failed here
-- (in r_row_id), 4 suspects wait; 7 a finish that has queued messages before which its lane has none in the outbox,
-- where there are few of them.
--
-- Later revisions edit it in place: 0005 (tokens), 0006 (sealed updates), 0007 and 0008 (plans).
--
-- Each statement sees what was committed before it began; so lanes are locked first, in one order, and
-- counted, moved and read afterwards. Everything but the first lock skips what others hold: no deadlock.
CREATE TYPE lane_end AS (
    bot_id bigint, lane text, token bigint, pending integer, runs integer, turns integer,
    what integer, after float8, error text
);

CREATE FUNCTION inbox_turn(
    _tokens bigint[], _ends smallint[], _afters float8[], _errors text[],
    _out_tokens bigint[], _out_ns integer[], _out_bodies bytea[],
    _slots integer, _lease float8, _max_runs integer, _max_failed integer,
    _rescue boolean, _suspects boolean
) RETURNS TABLE (
    r_what integer, r_token bigint, r_row_id bigint, r_bot_id bigint, r_update_id bigint,
    r_accepted_at float8, r_run integer, r_lane text, r_kind text, r_body bytea
)
LANGUAGE plpgsql
-- The tables grow from nothing to millions between two ANALYZE: only plans by index stay right.
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
AS $turn$
DECLARE
    most_turns CONSTANT integer := 16;  -- then the lane goes behind the others that wait
    few      CONSTANT integer := 16;    -- where there are more, each waits for others anyway
    moment   timestamptz := clock_timestamp();
    until    timestamptz := moment + make_interval(secs => _lease);
    ended    lane_end[];
    expired  lane_end[];
    taken    lane_end[];
    more     lane_end[];
    gone     bigint;
    failures bigint[];
    foremost lane_end[];
    rows     bigint[];
    found    bigint;
    free     integer;
BEGIN
    IF cardinality(_tokens) > 0 THEN
        WITH held AS MATERIALIZED (
            SELECT l.bot_id, l.lane, l.token, l.pending, l.runs, l.turns, e.what, e.after, e.error
            FROM unnest(_tokens, _ends, _afters, _errors) AS e(token, what, after, error)
            JOIN lanes l ON l.token = e.token
            ORDER BY l.bot_id, l.lane
            FOR UPDATE OF l
        )
        SELECT array_agg(ROW(h.bot_id, h.lane, h.token, h.pending, h.runs, h.turns, h.what, h.after, h.error)::lane_end)
        INTO ended FROM held h;
        IF coalesce(cardinality(ended), 0) < cardinality(_tokens) THEN
            RETURN QUERY
            SELECT 2, t.token, NULL::bigint, NULL::bigint, NULL::bigint, NULL::float8, NULL::integer,
                   NULL::text, NULL::text, NULL::bytea
            FROM unnest(_tokens) AS t(token)
            WHERE NOT EXISTS (SELECT 1 FROM unnest(ended) e WHERE e.token = t.token);
        END IF;
    END IF;

    IF _rescue THEN
        WITH dead AS MATERIALIZED (
            SELECT l.bot_id, l.lane, l.token, l.pending, l.runs, l.turns FROM lanes l
            WHERE l.token IS NOT NULL AND l.lease_until < moment AND l.token <> ALL (_tokens)
            ORDER BY l.bot_id, l.lane
            FOR UPDATE SKIP LOCKED
        ), spent AS MATERIALIZED (
            SELECT l.bot_id, l.lane, l.token, l.pending, l.runs, l.turns FROM lanes l
            WHERE l.token IS NULL AND l.not_before IS NULL AND l.runs >= 2 AND l.runs >= _max_runs
            ORDER BY l.bot_id, l.lane
            FOR UPDATE SKIP LOCKED
        )
        SELECT array_agg(ROW(d.bot_id, d.lane, d.token, d.pending, d.runs, d.turns,
                   CASE WHEN d.runs >= _max_runs THEN 1 ELSE 4 END, 0,
                   CASE WHEN d.runs >= _max_runs THEN 'NoEnd: ' || d.runs || ' runs had no end' END)::lane_end)
        INTO expired FROM (SELECT * FROM dead UNION ALL SELECT * FROM spent) d;
        ended := ended || expired;
        UPDATE lanes l SET not_before = NULL
        FROM (SELECT d.bot_id, d.lane FROM lanes d
              WHERE d.token IS NULL AND d.not_before IS NOT NULL AND d.not_before <= moment
              FOR UPDATE SKIP LOCKED) due
        WHERE l.bot_id = due.bot_id AND l.lane = due.lane;
    END IF;

    IF cardinality(ended) > 0 THEN
        WITH gone AS (
            DELETE FROM updates u
            USING unnest(ended) e
            CROSS JOIN LATERAL (
                SELECT f.row_id FROM updates f WHERE f.bot_id = e.bot_id AND f.lane = e.lane
                ORDER BY f.row_id LIMIT 1
            ) front
            WHERE e.what <= 1 AND u.bot_id = e.bot_id AND u.lane = e.lane AND u.row_id = front.row_id
            RETURNING u.row_id, u.bot_id, u.update_id, u.chat_id, u.user_id, u.accepted_at, u.lane, u.kind,
                      CASE WHEN e.what = 1 THEN u.body END AS body, e.token, e.what, e.runs, e.error,
                      e.what = 0 AND cardinality(_out_tokens) BETWEEN 1 AND few AND NOT EXISTS (
                          SELECT 1 FROM outbox o
                          WHERE o.bot_id = u.bot_id AND o.lane = u.lane AND o.row_id < u.row_id
                      ) AS foremost
        ), queued AS (
            INSERT INTO outbox (row_id, n, bot_id, lane, body)
            SELECT g.row_id, o.n, g.bot_id, g.lane, o.body
            FROM unnest(_out_tokens, _out_ns, _out_bodies) AS o(token, n, body)
            JOIN gone g ON g.token = o.token
            WHERE g.what = 0
        ), kept AS (
            INSERT INTO failed (row_id, bot_id, update_id, chat_id, user_id, accepted_at, runs, lane, kind, error, body)
            SELECT g.row_id, g.bot_id, g.update_id, g.chat_id, g.user_id, g.accepted_at, g.runs, g.lane, g.kind,
                   g.error, g.body
            FROM gone g WHERE g.what = 1
        )
        SELECT count(*), array_agg(g.row_id) FILTER (WHERE g.what = 1),
               array_agg(ROW(g.bot_id, g.lane, g.token, 0, 0, 0, 0, 0, NULL)::lane_end ORDER BY g.row_id)
                   FILTER (WHERE g.foremost),
               array_agg(g.row_id ORDER BY g.row_id) FILTER (WHERE g.foremost)
        INTO gone, failures, foremost, rows FROM gone g;
        IF foremost IS NOT NULL THEN
            RETURN QUERY
            SELECT 7, f.token, f.row_id, f.bot_id, NULL::bigint, NULL::float8,
                   NULL::integer, f.lane, NULL::text, NULL::bytea
            FROM ROWS FROM (unnest(foremost), unnest(rows)) AS f(
                bot_id, lane, token, pending, runs, turns, what, after, error, row_id);
        END IF;

        IF gone < (SELECT count(*) FROM unnest(ended) e WHERE e.what <= 1) THEN
            -- A lane without its row: count what is really there.
            SELECT array_agg(ROW(e.bot_id, e.lane, e.token,
                       (SELECT count(*) FROM updates u WHERE u.bot_id = e.bot_id AND u.lane = e.lane)
                           + CASE WHEN e.what <= 1 THEN 1 ELSE 0 END,
                       e.runs, e.turns, e.what, e.after, e.error)::lane_end)
            INTO ended FROM unnest(ended) e;
        END IF;

        WITH next AS MATERIALIZED (
            SELECT e.*, e.pending - CASE WHEN e.what <= 1 THEN 1 ELSE 0 END AS rest,
                   e.what = 0 AND e.pending > 1 AND e.turns < most_turns
                   AND row_number() OVER (ORDER BY e.what, e.pending <= 1, e.turns) <= _slots AS goes_on
            FROM unnest(ended) e
        ), moved AS (
            UPDATE lanes l SET
                pending = n.rest,
                token = CASE WHEN n.goes_on THEN nextval('lease_token') END,
                lease_until = CASE WHEN n.goes_on THEN until END,
                not_before = CASE WHEN n.what = 3 THEN moment + make_interval(secs => n.after) END,
                runs = CASE WHEN n.goes_on THEN 1 WHEN n.what <= 1 THEN 0 WHEN n.what = 4 THEN n.runs
                            ELSE greatest(n.runs - 1, 0) END,
                turns = CASE WHEN n.goes_on THEN n.turns + 1 ELSE 0 END,
                head = CASE WHEN n.goes_on OR n.what > 1 THEN l.head ELSE nextval('lane_ticket') END
            FROM next n
            WHERE l.bot_id = n.bot_id AND l.lane = n.lane AND n.rest > 0
            RETURNING l.bot_id, l.lane, l.token, l.runs, n.goes_on
        )
        SELECT array_agg(ROW(m.bot_id, m.lane, m.token, 0, m.runs, 0, 0, 0, NULL)::lane_end) FILTER (WHERE m.goes_on)
        INTO taken FROM moved m;

        DELETE FROM lanes l USING unnest(ended) e
        WHERE l.bot_id = e.bot_id AND l.lane = e.lane AND e.what <= 1 AND e.pending <= 1;
    END IF;

    IF failures IS NOT NULL THEN
        RETURN QUERY
        SELECT 3, NULL::bigint, cardinality(failures)::bigint, NULL::bigint, NULL::bigint, NULL::float8,
               NULL::integer, NULL::text, NULL::text, NULL::bytea;
        PERFORM inbox_trim_failed(failures, _max_failed);
    END IF;

    free := _slots - coalesce(cardinality(taken), 0);
    IF _suspects AND free > 0 AND taken IS NULL THEN
        WITH one AS MATERIALIZED (
            SELECT l.bot_id, l.lane FROM lanes l
            WHERE l.token IS NULL AND l.not_before IS NULL AND l.runs >= 2
            ORDER BY l.head LIMIT 1
            FOR UPDATE SKIP LOCKED
        ), claimed AS (
            UPDATE lanes l SET token = nextval('lease_token'), lease_until = until, runs = l.runs + 1, turns = 0
            FROM one o WHERE l.bot_id = o.bot_id AND l.lane = o.lane
            RETURNING l.bot_id, l.lane, l.token, l.runs
        )
        SELECT array_agg(ROW(c.bot_id, c.lane, c.token, 0, c.runs, 0, 1, 0, NULL)::lane_end) INTO taken FROM claimed c;
        IF taken IS NOT NULL THEN
            free := 0;
        END IF;
    END IF;

    IF free > 0 THEN
        WITH open AS MATERIALIZED (
            SELECT l.bot_id, l.lane FROM lanes l
            WHERE l.token IS NULL AND l.not_before IS NULL AND l.runs < 2
            ORDER BY l.head LIMIT free
            FOR UPDATE SKIP LOCKED
        ), claimed AS (
            UPDATE lanes l SET token = nextval('lease_token'), lease_until = until, runs = l.runs + 1, turns = 0
            FROM open o WHERE l.bot_id = o.bot_id AND l.lane = o.lane
            RETURNING l.bot_id, l.lane, l.token, l.runs
        )
        SELECT array_agg(ROW(c.bot_id, c.lane, c.token, 0, c.runs, 0, 0, 0, NULL)::lane_end) INTO more FROM claimed c;
        taken := taken || more;
    END IF;

    IF cardinality(taken) > 0 THEN
        RETURN QUERY
        SELECT t.what, t.token, u.row_id, t.bot_id, u.update_id, extract(epoch FROM u.accepted_at)::float8,
               t.runs, t.lane, u.kind, u.body
        FROM unnest(taken) t
        CROSS JOIN LATERAL (
            SELECT f.row_id, f.update_id, f.accepted_at, f.kind, f.body FROM updates f
            WHERE f.bot_id = t.bot_id AND f.lane = t.lane ORDER BY f.row_id LIMIT 1
        ) u;
        GET DIAGNOSTICS found = ROW_COUNT;
        IF found < cardinality(taken) THEN
            DELETE FROM lanes l USING unnest(taken) t
            WHERE l.bot_id = t.bot_id AND l.lane = t.lane
              AND NOT EXISTS (SELECT 1 FROM updates u WHERE u.bot_id = l.bot_id AND u.lane = l.lane);
        END IF;
    END IF;

    IF EXISTS (SELECT 1 FROM lanes l WHERE l.token IS NULL AND l.not_before IS NULL AND l.runs >= 2) THEN
        RETURN QUERY
        SELECT 4, NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint, NULL::float8,
               NULL::integer, NULL::text, NULL::text, NULL::bytea;
    END IF;
END
$turn$;

-- Keeps each bot's newest `_most`, and what was just written in any case; counts what it forgets.
CREATE FUNCTION inbox_trim_failed(_written bigint[], _most integer) RETURNS void
LANGUAGE plpgsql
SET enable_seqscan = off
AS $trim$
DECLARE
    bot     bigint;
    trimmed bigint;
BEGIN
    FOR bot IN SELECT DISTINCT f.bot_id FROM failed f WHERE f.row_id = ANY (_written) ORDER BY 1 LOOP
        WITH old AS MATERIALIZED (
            SELECT f.row_id FROM failed f WHERE f.bot_id = bot
            ORDER BY f.failed_at DESC, f.row_id DESC OFFSET _most
        ), free AS MATERIALIZED (
            SELECT f.row_id FROM failed f JOIN old o ON o.row_id = f.row_id
            WHERE f.row_id <> ALL (_written)
            FOR UPDATE OF f SKIP LOCKED
        ), dropped AS (
            DELETE FROM failed f USING free WHERE f.row_id = free.row_id RETURNING 1
        )
        SELECT count(*) INTO trimmed FROM dropped;
        IF trimmed > 0 THEN
            INSERT INTO bots AS b (bot_id, failed_trimmed) VALUES (bot, trimmed)
            ON CONFLICT (bot_id) DO UPDATE SET failed_trimmed = b.failed_trimmed + excluded.failed_trimmed;
        END IF;
    END LOOP;
END
$trim$;
