-- A snapshot comes in parts. The first is the head without its jobs, in snapshots of earlier formats the head as a
-- whole; the others are jobs. Each is JSON: as text, or compressed by LZ4 with its length ahead (4 bytes, the lowest
-- first). Parts without a snapshot are those of one that is being written, or was not finished.
CREATE TABLE parts (
    snapshot INTEGER NOT NULL,
    number   INTEGER NOT NULL,
    content  ANY NOT NULL,
    PRIMARY KEY (snapshot, number)
) STRICT;
INSERT INTO parts SELECT sequence, 0, head FROM snapshots;
ALTER TABLE snapshots ADD COLUMN parts INTEGER NOT NULL DEFAULT 1;
ALTER TABLE snapshots DROP COLUMN head;
