-- What a turn decides before `inbox_turn` ends its runs: FSM state, retries, runs given back while they go on.
--
-- Locks lanes first, in the order of everybody, then rows of `fsm` by key; after that, nothing is waited for.

-- All the keys of a writer, or none where one has another version than the one it read; and who wrote none.
CREATE FUNCTION inbox_write_fsm(
    _writers bigint[], _bots bigint[], _keys text[], _versions bigint[], _states text[], _datas bytea[]
) RETURNS bigint[]
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
AS $write$
DECLARE
    stale bigint[];
BEGIN
    -- A row for each key: who comes second waits for it, and then sees the version of who came first.
    INSERT INTO fsm (bot_id, key, version)
    SELECT DISTINCT w.bot_id, w.key COLLATE "C", 0 FROM unnest(_bots, _keys, _versions) AS w(bot_id, key, version)
    WHERE w.version = 0 ORDER BY 1, 2
    ON CONFLICT DO NOTHING;

    WITH locked AS MATERIALIZED (
        SELECT u.n, f.version FROM unnest(_bots, _keys) WITH ORDINALITY AS u(bot_id, key, n)
        JOIN fsm f ON f.bot_id = u.bot_id AND f.key = u.key
        ORDER BY f.bot_id, f.key
        FOR UPDATE OF f
    )
    SELECT coalesce(array_agg(w.writer), '{}') INTO stale
    FROM (
        SELECT u.writer, u.version, u.n,
               row_number() OVER (PARTITION BY u.bot_id, u.key ORDER BY u.n) AS nth
        FROM unnest(_writers, _bots, _keys, _versions) WITH ORDINALITY AS u(writer, bot_id, key, version, n)
    ) w
    LEFT JOIN locked f ON f.n = w.n
    WHERE w.nth > 1 OR coalesce(f.version, 0) <> w.version;

    UPDATE fsm f SET state = w.state, data = w.data, version = nextval('lease_token'), updated_at = clock_timestamp()
    FROM unnest(_writers, _bots, _keys, _states, _datas) AS w(writer, bot_id, key, state, data)
    WHERE f.bot_id = w.bot_id AND f.key = w.key AND w.writer <> ALL (stale)
      AND (w.state IS NOT NULL OR w.data IS NOT NULL);

    DELETE FROM fsm f
    USING unnest(_writers, _bots, _keys, _states, _datas) AS w(writer, bot_id, key, state, data)
    WHERE f.bot_id = w.bot_id AND f.key = w.key
      AND (f.version = 0 OR (w.writer <> ALL (stale) AND w.state IS NULL AND w.data IS NULL));

    RETURN stale;
END
$write$;

-- r_n counts the keys from 1; a key without a row is not in the answer.
CREATE FUNCTION inbox_read_fsm(_bots bigint[], _keys text[])
RETURNS TABLE (r_n bigint, r_version bigint, r_state text, r_data bytea)
LANGUAGE plpgsql STABLE
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
AS $read$
BEGIN
    RETURN QUERY
    SELECT k.n, f.version, f.state, f.data
    FROM unnest(_bots, _keys) WITH ORDINALITY AS k(bot_id, key, n)
    JOIN fsm f ON f.bot_id = k.bot_id AND f.key = k.key;
END
$read$;

CREATE TYPE turn_row AS (
    r_what integer, r_token bigint, r_row_id bigint, r_bot_id bigint, r_update_id bigint,
    r_accepted_at float8, r_run integer, r_lane text, r_kind text, r_body bytea
);

-- The answer is that of `inbox_turn`, beside a lease what FSM state is named like its lane, and r_what 5: a finish that another's FSM state has undone, 6: a retry
-- that was one too many. `_uncounted` is null where the caller has never given a run back in its life.
CREATE FUNCTION inbox_run_turn(
    _tokens bigint[], _ends smallint[], _afters float8[], _errors text[],
    _out_tokens bigint[], _out_ns integer[], _out_bodies bytea[],
    _slots integer, _lease float8, _max_runs integer, _max_failed integer,
    _rescue boolean, _suspects boolean,
    _uncounted bigint[],
    _retry_tokens bigint[], _retry_firsts float8[], _retry_mosts float8[], _retry_times integer[],
    _fsm_tokens bigint[], _fsm_bots bigint[], _fsm_keys text[], _fsm_versions bigint[], _fsm_states text[],
    _fsm_datas bytea[], _fsm boolean
) RETURNS TABLE (
    r_what integer, r_token bigint, r_row_id bigint, r_bot_id bigint, r_update_id bigint,
    r_accepted_at float8, r_run integer, r_lane text, r_kind text, r_body bytea,
    r_fsm_version bigint, r_fsm_state text, r_fsm_data bytea
)
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
AS $turn$
DECLARE
    lost  bigint[];
    spent bigint[];
    stale bigint[];
    done  turn_row[];
BEGIN
    IF _uncounted IS NOT NULL OR cardinality(_retry_tokens) > 0 OR cardinality(_fsm_tokens) > 0 THEN
        PERFORM 1 FROM unnest(_tokens || _uncounted) AS t(token) JOIN lanes l ON l.token = t.token
        ORDER BY l.bot_id, l.lane
        FOR UPDATE OF l;
    END IF;

    IF _uncounted IS NOT NULL THEN
        UPDATE lanes l SET runs = l.runs - 1, uncounted = l.token
        WHERE l.token = ANY (_uncounted) AND l.uncounted IS DISTINCT FROM l.token;
        SELECT array_agg(t.token) INTO lost FROM unnest(_uncounted) AS t(token)
        WHERE NOT EXISTS (SELECT 1 FROM lanes l WHERE l.token = t.token);
        -- An end decides as if its run had never been given back.
        UPDATE lanes l SET runs = l.runs + 1, uncounted = NULL
        WHERE l.token = ANY (_tokens) AND l.uncounted = l.token;
    END IF;

    IF cardinality(_retry_tokens) > 0 THEN
        WITH asked AS MATERIALIZED (
            SELECT r.token, r.first, r.most, r.times, front.bot_id, front.lane, front.row_id
            FROM unnest(_retry_tokens, _retry_firsts, _retry_mosts, _retry_times) AS r(token, first, most, times)
            JOIN lanes l ON l.token = r.token
            CROSS JOIN LATERAL (
                SELECT f.bot_id, f.lane, f.row_id FROM updates f WHERE f.bot_id = l.bot_id AND f.lane = l.lane
                ORDER BY f.row_id LIMIT 1
            ) front
        ), tried AS (
            UPDATE updates u SET retries = u.retries + 1 FROM asked a
            WHERE u.bot_id = a.bot_id AND u.lane = a.lane AND u.row_id = a.row_id
            RETURNING a.token, u.retries, u.retries > a.times AS over,
                      least(a.most, a.first * 2.0 ^ least(u.retries - 1, 30)) AS after
        )
        SELECT array_agg(CASE WHEN t.over THEN 1::smallint ELSE e.what END ORDER BY e.n),
               array_agg(coalesce(t.after, e.after) ORDER BY e.n),
               array_agg(e.token) FILTER (WHERE t.over)
        INTO _ends, _afters, spent
        FROM unnest(_tokens, _ends, _afters) WITH ORDINALITY AS e(token, what, after, n)
        LEFT JOIN tried t ON t.token = e.token;
    END IF;

    IF cardinality(_fsm_tokens) > 0 THEN
        SELECT inbox_write_fsm(array_agg(w.token ORDER BY w.n), array_agg(w.bot_id ORDER BY w.n),
                   array_agg(w.key ORDER BY w.n), array_agg(w.version ORDER BY w.n),
                   array_agg(w.state ORDER BY w.n), array_agg(w.data ORDER BY w.n))
        INTO stale
        FROM unnest(_fsm_tokens, _fsm_bots, _fsm_keys, _fsm_versions, _fsm_states, _fsm_datas)
            WITH ORDINALITY AS w(token, bot_id, key, version, state, data, n)
        JOIN lanes l ON l.token = w.token
        HAVING count(*) > 0;
        IF cardinality(stale) > 0 THEN
            SELECT array_agg(CASE WHEN e.token = ANY (stale) THEN 2::smallint ELSE e.what END ORDER BY e.n)
            INTO _ends
            FROM unnest(_tokens, _ends) WITH ORDINALITY AS e(token, what, n);
        END IF;
    END IF;

    SELECT array_agg(ROW(t.*)::turn_row) INTO done
    FROM inbox_turn(_tokens, _ends, _afters, _errors, _out_tokens, _out_ns, _out_bodies,
                    _slots, _lease, _max_runs, _max_failed, _rescue, _suspects) t;
    -- A statement of its own, so that it sees what was written above.
    IF _fsm THEN
        RETURN QUERY
        SELECT d.*, f.version, f.state, f.data FROM unnest(done) d
        LEFT JOIN fsm f ON f.bot_id = d.r_bot_id AND f.key = d.r_lane;
    ELSE
        RETURN QUERY SELECT d.*, NULL::bigint, NULL::text, NULL::bytea FROM unnest(done) d;
    END IF;
    IF coalesce(lost, spent, stale) IS NOT NULL THEN
        RETURN QUERY
        SELECT t.what, t.token, NULL::bigint, NULL::bigint, NULL::bigint, NULL::float8, NULL::integer,
               NULL::text, NULL::text, NULL::bytea, NULL::bigint, NULL::text, NULL::bytea
        FROM (SELECT 2, unnest(lost) UNION ALL SELECT DISTINCT 5, unnest(stale)
              UNION ALL SELECT 6, unnest(spent)) AS t(what, token);
    END IF;
END
$turn$;
