-- The history: how fast ranks got on while the same others were on their device. Rows come while jobs run, so
-- the job may not be in its table yet.
CREATE TABLE stretches (
    job           TEXT NOT NULL,
    attempt       INTEGER NOT NULL,
    rank          INTEGER NOT NULL,
    device        TEXT NOT NULL,
    gpu           TEXT NOT NULL,              -- the device's model
    sharing       TEXT NOT NULL,              -- exclusive, mps or time_sliced
    neighbours    TEXT NOT NULL,              -- jobs on the device all that time, as a JSON list
    started_at    TEXT NOT NULL,              -- of the first step counted; RFC 3339, UTC
    ended_at      TEXT NOT NULL,              -- of the last
    started_at_us INTEGER NOT NULL,           -- microseconds since 1970
    ended_at_us   INTEGER NOT NULL,
    steps         INTEGER NOT NULL,
    rate          REAL NOT NULL,              -- steps a second
    memory_bytes  INTEGER,                    -- the most that the rank was seen to hold
    utilisation   REAL,                       -- mean of the device, 0 to 1
    PRIMARY KEY (job, attempt, rank, device, started_at_us)
) STRICT, WITHOUT ROWID;
CREATE INDEX stretches_by_end ON stretches (ended_at_us);

-- The same, with what jobs are called and train, as far as they have ended.
CREATE VIEW co_location AS
SELECT stretches.job, name, json_extract(record, '$.trained.model') AS model,
       json_extract(record, '$.trained.batch_size') AS batch_size, gpu, sharing,
       (SELECT json_group_array(coalesce(json_extract(other.record, '$.trained.model'), other.name, value))
        FROM json_each(neighbours) LEFT JOIN jobs AS other ON other.id = value) AS beside,
       steps, round(rate, 3) AS rate, memory_bytes, round(utilisation, 3) AS utilisation,
       stretches.started_at, stretches.ended_at
FROM stretches LEFT JOIN jobs ON jobs.id = stretches.job
ORDER BY stretches.ended_at_us DESC, stretches.job;
