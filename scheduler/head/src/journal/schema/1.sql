CREATE TABLE meta (
    key   TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) STRICT;

-- What happened to the head, in order. Times are microseconds since 1970, UTC.
CREATE TABLE events (
    sequence INTEGER NOT NULL PRIMARY KEY,
    at       INTEGER NOT NULL,
    event    TEXT NOT NULL
) STRICT;

-- The head after the event of this number.
CREATE TABLE snapshots (
    sequence INTEGER NOT NULL PRIMARY KEY,
    at       INTEGER NOT NULL,
    head     TEXT NOT NULL
) STRICT;

-- The history: one row for each job, array member and array as a whole that ended.
CREATE TABLE jobs (
    id              TEXT NOT NULL PRIMARY KEY,  -- '12', or '12.5' for a member of an array
    number          INTEGER NOT NULL,
    array_index     INTEGER,
    members         INTEGER,                    -- of an array as a whole
    name            TEXT NOT NULL,
    user            TEXT NOT NULL,
    "group"         TEXT,
    state           TEXT NOT NULL,
    reason_code     TEXT NOT NULL,
    exit_code       INTEGER,
    signal          INTEGER,
    submitted_at    TEXT NOT NULL,              -- RFC 3339, UTC
    started_at      TEXT,
    ended_at        TEXT,
    submitted_at_us INTEGER NOT NULL,           -- microseconds since 1970
    started_at_us   INTEGER,
    ended_at_us     INTEGER NOT NULL,
    runtime_s       REAL,                       -- of the latest attempt
    gpus            INTEGER NOT NULL,           -- devices on all nodes together
    share           REAL NOT NULL,              -- of each of them
    nodes           TEXT NOT NULL,              -- of the latest attempt, with commas between
    devices         TEXT NOT NULL,
    command         TEXT NOT NULL,
    record          TEXT NOT NULL               -- everything, as JSON
) STRICT;
CREATE UNIQUE INDEX jobs_by_number ON jobs (number, ifnull(array_index, -1));
CREATE INDEX jobs_by_end ON jobs (ended_at_us);

-- One row for each attempt of those jobs.
CREATE TABLE attempts (
    job           TEXT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    attempt       INTEGER NOT NULL,
    started_at    TEXT NOT NULL,
    ended_at      TEXT,
    started_at_us INTEGER NOT NULL,
    ended_at_us   INTEGER,
    runtime_s     REAL,
    stopped       TEXT,                         -- why it was stopped, if it was
    gpus          REAL NOT NULL,                -- devices it held, each counted by its share
    nodes         TEXT NOT NULL,
    devices       TEXT NOT NULL,
    PRIMARY KEY (job, attempt)
) STRICT, WITHOUT ROWID;

CREATE VIEW recent_jobs AS
SELECT id, name, user, state, reason_code, exit_code, submitted_at, started_at, ended_at,
       round(runtime_s, 1) AS runtime_s, gpus, share, nodes, command
FROM jobs ORDER BY ended_at_us DESC, number DESC, array_index DESC;

CREATE VIEW usage_by_user AS
SELECT user,
       count(*) AS jobs,
       sum(state = 'COMPLETED') AS completed,
       round(coalesce(sum(device_seconds), 0) / 3600.0, 3) AS gpu_hours,
       max(ended_at) AS last_ended_at
FROM jobs
LEFT JOIN (SELECT job, sum(runtime_s * gpus) AS device_seconds FROM attempts GROUP BY job) ON job = id
WHERE members IS NULL
GROUP BY user ORDER BY gpu_hours DESC, user;
