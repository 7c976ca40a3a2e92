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
