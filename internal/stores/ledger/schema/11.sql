CREATE TABLE message_ids (       -- Clutch messages in lines, kept longer than the messages
  run  TEXT NOT NULL,
  id   TEXT NOT NULL,
  hash TEXT NOT NULL,            -- of the content
  PRIMARY KEY (run, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE commands (          -- requests with an idempotency key
  sender TEXT NOT NULL,
  run    TEXT NOT NULL,
  key    TEXT NOT NULL,
  hash   TEXT NOT NULL,          -- of the command, without what differs when it is sent again
  id     TEXT NOT NULL,          -- tasks.id of the task that carries it out
  PRIMARY KEY (sender, run, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE followers (         -- tasks that get the outcome of another task, which has the same command
  id     TEXT PRIMARY KEY,       -- tasks.id
  leader TEXT NOT NULL           -- tasks.id of the other task
) STRICT, WITHOUT ROWID;

CREATE INDEX followers_leader ON followers (leader);
