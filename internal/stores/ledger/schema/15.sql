CREATE TABLE waits (             -- what wakes a held task, beside its time and a person
  task   INTEGER NOT NULL,       -- tasks.seq
  reason TEXT NOT NULL,          -- of its hold
  key    TEXT NOT NULL,          -- after:<tasks.id>
  PRIMARY KEY (task, reason)
) STRICT, WITHOUT ROWID;

CREATE INDEX waits_key ON waits (key, task);
