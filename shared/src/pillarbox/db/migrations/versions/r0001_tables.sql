CREATE TABLE bots (
    bot_id            bigint PRIMARY KEY,
    paused            boolean NOT NULL DEFAULT false,
    failed_trimmed    bigint NOT NULL DEFAULT 0,
    malformed_trimmed bigint NOT NULL DEFAULT 0,
    created_at        timestamptz NOT NULL DEFAULT now()
);

-- A repeat is known by (bot, id, digest of the body), longer than its update lives.
CREATE TABLE seen (
    bot_id      bigint NOT NULL,
    update_id   bigint NOT NULL,
    accepted_at timestamptz NOT NULL DEFAULT now(),
    digest      bytea NOT NULL,
    PRIMARY KEY (bot_id, update_id, digest)
);
CREATE INDEX seen_accepted_at ON seen (accepted_at);

CREATE SEQUENCE lane_ticket;
CREATE SEQUENCE lease_token;

-- One row per lane that has work. `runs` counts the runs without an end of its lowest row in `updates`;
-- `turns` counts updates in a row of one holder. Accept and renew change no indexed column (HOT).
CREATE TABLE lanes (
    bot_id      bigint NOT NULL,
    head        bigint NOT NULL DEFAULT nextval('lane_ticket'),
    token       bigint,
    lease_until timestamptz,
    not_before  timestamptz,
    pending     integer NOT NULL,
    runs        integer NOT NULL DEFAULT 0,
    turns       integer NOT NULL DEFAULT 0,
    lane        text COLLATE "C" NOT NULL,
    PRIMARY KEY (bot_id, lane)
) WITH (fillfactor = 50);
CREATE INDEX lanes_free ON lanes (head) WHERE token IS NULL AND not_before IS NULL AND runs < 2;
CREATE INDEX lanes_suspect ON lanes (head) WHERE token IS NULL AND not_before IS NULL AND runs >= 2;
CREATE INDEX lanes_later ON lanes (not_before) WHERE token IS NULL AND not_before IS NOT NULL;
CREATE UNIQUE INDEX lanes_leased ON lanes (token) WHERE token IS NOT NULL;

-- Rows are inserted and deleted, never updated. `row_id` is the order of acceptance inside a lane.
CREATE TABLE updates (
    row_id      bigint GENERATED ALWAYS AS IDENTITY,
    bot_id      bigint NOT NULL,
    update_id   bigint NOT NULL,
    chat_id     bigint,
    user_id     bigint,
    accepted_at timestamptz NOT NULL DEFAULT now(),
    lane        text COLLATE "C" NOT NULL,
    kind        text NOT NULL,
    body        bytea NOT NULL,
    PRIMARY KEY (bot_id, lane, row_id)
);
CREATE INDEX updates_update_id ON updates (bot_id, update_id);
-- The queue knows a day's ids of messages, and they hold these numbers: a database that was made anew beside
-- an old Redis must not begin with them again.
SELECT setval(pg_get_serial_sequence('updates', 'row_id'), (extract(epoch FROM clock_timestamp()) * 1000000)::bigint);

CREATE TABLE failed (
    row_id      bigint PRIMARY KEY,
    bot_id      bigint NOT NULL,
    update_id   bigint NOT NULL,
    chat_id     bigint,
    user_id     bigint,
    accepted_at timestamptz NOT NULL,
    failed_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    runs        integer NOT NULL,
    lane        text COLLATE "C" NOT NULL,
    kind        text NOT NULL,
    error       text NOT NULL,
    body        bytea NOT NULL
);
CREATE INDEX failed_newest ON failed (bot_id, failed_at, row_id);
CREATE INDEX failed_update_id ON failed (bot_id, update_id);

CREATE TABLE outbox (
    row_id bigint NOT NULL,
    n      integer NOT NULL,
    bot_id bigint NOT NULL,
    lane   text COLLATE "C" NOT NULL,
    body   bytea NOT NULL,
    PRIMARY KEY (row_id, n)
);
CREATE INDEX outbox_lane ON outbox (bot_id, lane, row_id, n);

CREATE TABLE fsm (
    bot_id     bigint NOT NULL,
    key        text COLLATE "C" NOT NULL,
    version    bigint NOT NULL DEFAULT 1,
    updated_at timestamptz NOT NULL DEFAULT now(),
    state      text,
    data       bytea,
    PRIMARY KEY (bot_id, key)
);

CREATE TABLE pins (
    bot_id      bigint NOT NULL,
    user_id     bigint NOT NULL,
    pinned_at   timestamptz NOT NULL DEFAULT now(),
    fingerprint text NOT NULL,
    key         bytea NOT NULL,
    PRIMARY KEY (bot_id, user_id)
);

CREATE TABLE malformed (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    bot_id      bigint NOT NULL,
    received_at timestamptz NOT NULL DEFAULT now(),
    reason      text NOT NULL,
    body        bytea NOT NULL
);
CREATE INDEX malformed_bot ON malformed (bot_id, id);

CREATE TABLE audit (
    id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at        timestamptz NOT NULL DEFAULT now(),
    bot_id    bigint,
    update_id bigint,
    row_id    bigint,
    by        text NOT NULL,
    action    text NOT NULL
);
CREATE INDEX audit_at ON audit (at, id);

CREATE TABLE jobs (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    bot_id      bigint,
    created_at  timestamptz NOT NULL DEFAULT now(),
    finished_at timestamptz,
    by          text NOT NULL,
    action      text NOT NULL,
    params      text NOT NULL DEFAULT '{}',
    state       text NOT NULL DEFAULT 'waiting',
    result      text
);
CREATE INDEX jobs_waiting ON jobs (id) WHERE finished_at IS NULL;

-- Small tables that change all the time: cleaned early, never cut short under an exclusive lock.
ALTER TABLE lanes SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_threshold = 1000, vacuum_truncate = false);
ALTER TABLE updates SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_insert_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0, vacuum_truncate = false);
ALTER TABLE outbox SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0, vacuum_truncate = false);
ALTER TABLE seen SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.05);
ALTER TABLE failed SET (autovacuum_vacuum_scale_factor = 0.02);
