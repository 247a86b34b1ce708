CREATE TABLE seals (             -- of all events from first to last
  first     INTEGER PRIMARY KEY,
  last      INTEGER NOT NULL,
  previous  BLOB NOT NULL,       -- hash of the seal before, or where a chain starts, of the last known one
  hash      BLOB NOT NULL,
  time      INTEGER NOT NULL,
  key       TEXT NOT NULL,
  signature BLOB NOT NULL
) STRICT;

CREATE TABLE pruned (            -- what is left of events that retention removed, until all of their seal are removed
  seq  INTEGER PRIMARY KEY,      -- events.seq
  hash BLOB NOT NULL
) STRICT;

CREATE TABLE prunes (            -- records of what retention removed
  number    INTEGER PRIMARY KEY,
  seqs      TEXT NOT NULL,
  head      BLOB NOT NULL,       -- seals.hash of the latest seal then
  time      INTEGER NOT NULL,
  key       TEXT NOT NULL,
  signature BLOB NOT NULL
) STRICT;
