CREATE TABLE commits (           -- one row
  ledger INTEGER NOT NULL,       -- names this ledger, so that no other one's file is taken for its own
  number INTEGER NOT NULL,       -- how many commits there were
  live   INTEGER NOT NULL        -- 1: somebody has it open for writing, or was killed; then the file -last is there
) STRICT;

INSERT INTO commits VALUES (abs(random() % 4611686018427387904), 0, 0);
DROP TABLE redo;

CREATE TABLE open_tasks (        -- how many revisions are not done, kept in the transactions that move them
  requester TEXT NOT NULL,
  state     TEXT NOT NULL,
  tasks     INTEGER NOT NULL,
  PRIMARY KEY (requester, state)
) STRICT, WITHOUT ROWID;

INSERT INTO open_tasks SELECT requester, state, count(*) FROM tasks WHERE state <> 'done' GROUP BY requester, state;
