ALTER TABLE tasks ADD COLUMN parent INTEGER NOT NULL DEFAULT 0; -- tasks.seq of the task whose run asked for it; 0 for none
ALTER TABLE tasks ADD COLUMN depth INTEGER NOT NULL DEFAULT 0;  -- how many parents are above it

CREATE INDEX tasks_children ON tasks (parent) WHERE parent <> 0;

ALTER TABLE runs ADD COLUMN terms TEXT NOT NULL DEFAULT '';     -- what it was admitted with, a JSON object
ALTER TABLE runs ADD COLUMN reserved_tokens INTEGER;            -- what it may spend; NULL: no limit
ALTER TABLE runs ADD COLUMN reserved_cents INTEGER;
ALTER TABLE runs ADD COLUMN lender INTEGER NOT NULL DEFAULT 0;  -- tasks.seq of the run that lent it that; 0 for none
ALTER TABLE runs ADD COLUMN lender_attempt INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN settled INTEGER NOT NULL DEFAULT 0; -- 1: it is over, and its spending counted

CREATE TABLE approvals (         -- what a person was asked for, and what came of it
  seq      INTEGER PRIMARY KEY AUTOINCREMENT,
  task     INTEGER NOT NULL,
  stage    TEXT NOT NULL,        -- pre: before a run; post: before its result is shown
  digest   TEXT NOT NULL,        -- names what exactly it is about
  plan     TEXT NOT NULL,        -- and says it, as a JSON object; '' after a run
  approver TEXT NOT NULL,        -- the only one who may; '' for anybody who may at all
  asked    INTEGER NOT NULL,
  expires  INTEGER,              -- NULL: never by itself
  decision TEXT NOT NULL,        -- '' while it is open
  decided  INTEGER,
  decider  TEXT NOT NULL,
  note     TEXT NOT NULL,
  answer   BLOB                  -- the result that was not to be shown
) STRICT;

CREATE INDEX approvals_task ON approvals (task);

CREATE TABLE accounts (          -- what was spent of a budget, and what is reserved of it
  owner           TEXT NOT NULL, -- requester:x, agent:y
  day             TEXT NOT NULL, -- 2026-03-09, in UTC
  limit_tokens    INTEGER,       -- as the latest run under it found it; NULL: none
  limit_cents     INTEGER,
  reserved_tokens INTEGER NOT NULL,
  reserved_cents  INTEGER NOT NULL,
  spent_tokens    INTEGER NOT NULL,
  spent_cents     INTEGER NOT NULL,
  unknown         INTEGER NOT NULL, -- runs that count as they were reserved, for nobody knows what they spent
  PRIMARY KEY (owner, day)
) STRICT, WITHOUT ROWID;
