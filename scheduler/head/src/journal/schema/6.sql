-- Each event and each snapshot says which format its text has. Rows of formats 1 to 5 stay as they are: one reader serves
-- them all, and the column counts them as 5.
ALTER TABLE events ADD COLUMN format INTEGER NOT NULL DEFAULT 5;
ALTER TABLE snapshots ADD COLUMN format INTEGER NOT NULL DEFAULT 5;

-- Why an attempt was stopped, in the words of `cohabit show --output json`: time_limit instead of TimeLimit.
UPDATE attempts SET stopped = CASE stopped
    WHEN 'Cancelled' THEN 'cancelled'
    WHEN 'TimeLimit' THEN 'time_limit'
    WHEN 'Requeued' THEN 'requeued'
    WHEN 'GangBroken' THEN 'gang_broken'
    WHEN 'Preempted' THEN 'preempted'
    WHEN 'Superseded' THEN 'superseded'
    WHEN 'Orphaned' THEN 'orphaned'
    WHEN 'MpsFault' THEN 'mps_fault'
    WHEN 'MpsFaultVictim' THEN 'mps_fault_victim'
    WHEN 'GpuMemory' THEN 'gpu_memory'
    WHEN 'DeviceLost' THEN 'device_lost'
    WHEN 'Unenforced' THEN 'unenforced'
    ELSE stopped END
WHERE stopped IS NOT NULL;

-- The history: ranks that found no memory left on a GPU of which they held a part, or all. A job may not be in its
-- table yet.
CREATE TABLE misfits (
    job         TEXT NOT NULL,
    attempt     INTEGER NOT NULL,
    rank        INTEGER NOT NULL,
    device      TEXT NOT NULL,
    gpu         TEXT NOT NULL,              -- the device's model
    sharing     TEXT NOT NULL,              -- exclusive, mps or time_sliced
    neighbours  TEXT NOT NULL,              -- the other jobs that ran on the device, as a JSON list
    ended_at    TEXT NOT NULL,              -- RFC 3339, UTC
    ended_at_us INTEGER NOT NULL,           -- microseconds since 1970
    PRIMARY KEY (job, attempt, rank)
) STRICT, WITHOUT ROWID;
CREATE INDEX misfits_by_end ON misfits (ended_at_us);

-- The history: what ranks did with their GPUs, a row for each rank and GPU that was measured. Of a shared GPU all figures but
-- the memory are of the whole GPU while the rank held its part. A job may not be in its table yet.
CREATE TABLE usage (
    job         TEXT NOT NULL,
    attempt     INTEGER NOT NULL,
    rank        INTEGER NOT NULL,
    device      TEXT NOT NULL,
    user        TEXT NOT NULL,
    node        TEXT NOT NULL,
    share       REAL NOT NULL,              -- the part of the GPU that it held
    ended_at    TEXT NOT NULL,              -- RFC 3339, UTC
    ended_at_us INTEGER NOT NULL,           -- microseconds since 1970
    held_s      REAL NOT NULL,              -- for how long its process ran
    measured_s  REAL NOT NULL,              -- the part of it that was measured; the rest is unknown
    busy_s      REAL NOT NULL,              -- utilisation over the measured time
    idle_s      REAL NOT NULL,              -- measured time in pauses of ten minutes or more
    memory_bytes INTEGER,                   -- the most that the rank held
    capacity_bytes INTEGER NOT NULL,        -- the memory of the GPU
    energy_wh   REAL,                       -- of the whole GPU
    shared      INTEGER NOT NULL,           -- whether another rank was on the GPU at some time
    curve       TEXT NOT NULL,              -- utilisation and memory over time, in percent, as JSON
    PRIMARY KEY (job, attempt, rank, device)
) STRICT, WITHOUT ROWID;
CREATE INDEX usage_by_end ON usage (ended_at_us);

-- The feed: what people may want to be told, numbered without a gap in the order of the events that it follows from. The
-- latest row always stays.
CREATE TABLE feed (
    number      INTEGER PRIMARY KEY,        -- from 1
    sequence    INTEGER NOT NULL,           -- of the event in the journal
    ordinal     INTEGER NOT NULL,           -- among the rows of that event, from 0
    at_us       INTEGER NOT NULL,           -- microseconds since 1970
    kind        TEXT NOT NULL,              -- start, end, fail, ...
    job         TEXT,                       -- the job that it happened to, if any
    user        TEXT,                       -- who submitted that job
    event       TEXT NOT NULL               -- all of it, as JSON
) STRICT;
CREATE INDEX feed_by_user ON feed (user, number);

-- What has left the head's memory of jobs that ended a while ago, so that they can be explained and queued again: parts of
-- snapshots, compressed as those.
CREATE TABLE archive (
    number      INTEGER NOT NULL,           -- of the job, or of the array
    part        INTEGER NOT NULL,           -- from 0
    ended_at_us INTEGER NOT NULL,           -- microseconds since 1970
    format      INTEGER NOT NULL,
    content     BLOB NOT NULL,
    PRIMARY KEY (number, part)
) STRICT;
CREATE INDEX archive_by_end ON archive (ended_at_us);

-- Sums for reports: what a user of a project had on a day, in seconds on GPUs times the part that was held. They stay when the
-- jobs that they are the sums of are gone. `meta` has under 'accounted' the event up to which they go.
CREATE TABLE account_days (
    day          INTEGER NOT NULL,          -- since 1970, UTC
    project      TEXT NOT NULL,             -- that of the user at that time; their own name if they were in none
    user         TEXT NOT NULL,
    held_s       REAL NOT NULL,
    measured_s   REAL NOT NULL,             -- the part of it that was measured; the rest is unknown
    busy_s       REAL NOT NULL,             -- utilisation over the measured time
    idle_s       REAL NOT NULL,             -- in pauses of ten minutes or more
    lost_s       REAL NOT NULL,             -- by attempts that ended through no doing of their own
    exclusive_s  REAL NOT NULL,             -- what the same work takes alone: of jobs that had their GPUs alone,
    compared_s   REAL NOT NULL,             -- of jobs whose slowdown was measured,
    predicted_s  REAL NOT NULL,             -- of jobs whose slowdown was predicted
    unknown_s    REAL NOT NULL,             -- held by jobs whose slowdown is not known
    wait_s       REAL NOT NULL,             -- the sum of what is counted below
    PRIMARY KEY (day, project, user)
) STRICT, WITHOUT ROWID;

-- Counts of the same days: jobs that ended (kind 'job', by state), attempts that ended ('attempt', by how), and attempts that
-- started ('wait', by the bucket of how long they had waited: 0 below a second, n from 1.1^(n-1) to 1.1^n seconds).
CREATE TABLE account_counts (
    day     INTEGER NOT NULL,
    project TEXT NOT NULL,
    user    TEXT NOT NULL,
    kind    TEXT NOT NULL,
    key     TEXT NOT NULL,
    count   INTEGER NOT NULL,
    PRIMARY KEY (day, project, user, kind, key)
) STRICT, WITHOUT ROWID;

-- What was before: attempts of jobs in the history. How long they waited is not known. Events up to here count no more.
INSERT INTO account_days
SELECT attempts.ended_at_us / 86400000000, user, user, sum(attempts.runtime_s * attempts.gpus), 0, 0, 0,
       sum(iif(attempts.stopped IN ('preempted', 'superseded', 'orphaned', 'mps_fault_victim', 'device_lost',
           'unenforced'), attempts.runtime_s * attempts.gpus, 0)), 0, 0, 0, sum(attempts.runtime_s * attempts.gpus), 0
FROM attempts JOIN jobs ON job = id WHERE members IS NULL AND attempts.ended_at_us IS NOT NULL
GROUP BY 1, 2;
INSERT INTO account_counts
SELECT ended_at_us / 86400000000, user, user, 'job', state, count(*) FROM jobs WHERE members IS NULL GROUP BY 1, 2, 5;
INSERT INTO meta SELECT 'accounted', max(sequence) || ':4294967295' FROM events HAVING count(*) > 0;
