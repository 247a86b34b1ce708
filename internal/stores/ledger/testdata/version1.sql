-- A ledger as version 1 wrote it. It is never changed: every later version must read it.
-- Times are microseconds since 1970 in UTC, or NULL. Bodies have tables of
-- their own, so that reading a million tasks does not read what they said.

CREATE TABLE files (             -- how far each task file was read
  path    TEXT PRIMARY KEY,      -- tasks/x.jsonl
  dev     INTEGER NOT NULL,
  inode   INTEGER NOT NULL,
  offset  INTEGER NOT NULL,
  replay  INTEGER NOT NULL,
  head    BLOB,
  tail    BLOB
) STRICT;

CREATE TABLE tasks (             -- one row for each revision
  seq        INTEGER PRIMARY KEY AUTOINCREMENT, -- never given twice: runs and events name it
  id         TEXT NOT NULL,
  revision   INTEGER NOT NULL,
  latest     INTEGER NOT NULL,   -- 1 for the highest revision of its id
  state      TEXT NOT NULL,
  attempt    INTEGER NOT NULL,
  reasons    TEXT NOT NULL,      -- why it is held, with commas between
  until      INTEGER,
  status     TEXT NOT NULL,
  kind       TEXT NOT NULL,
  put        INTEGER NOT NULL,   -- 1: its result file is in place
  delivered  INTEGER NOT NULL,   -- 1: its callbacks are done
  replaces   INTEGER NOT NULL,   -- 1: the earlier result is not in the history yet
  agent      TEXT NOT NULL,
  requester  TEXT NOT NULL,
  type       TEXT NOT NULL,
  dialect    TEXT NOT NULL,
  hash       TEXT NOT NULL,
  result_sum TEXT NOT NULL,
  deadline   INTEGER,
  received   INTEGER,
  finished   INTEGER,
  file       TEXT NOT NULL,
  offset     INTEGER NOT NULL,
  UNIQUE (id, revision)
) STRICT;

-- Both hold a handful of rows however many tasks are done.
CREATE INDEX tasks_open ON tasks (seq, state) WHERE state <> 'done';
CREATE INDEX tasks_unsettled ON tasks (seq) WHERE state = 'done' AND (put = 0 OR delivered = 0);

CREATE TABLE requests (          -- the lines as they came
  task INTEGER PRIMARY KEY,
  body BLOB NOT NULL
) STRICT;

CREATE TABLE results (           -- the result files as they are, or will be, put
  task INTEGER PRIMARY KEY,
  body BLOB NOT NULL
) STRICT;

CREATE TABLE runs (
  task        INTEGER NOT NULL,
  attempt     INTEGER NOT NULL,
  run_id      TEXT NOT NULL,
  intent      INTEGER NOT NULL,
  pid         INTEGER NOT NULL,  -- 0 until it is known
  pid_start   INTEGER NOT NULL,
  boot        TEXT NOT NULL,
  started     INTEGER,
  finished    INTEGER,
  exit_code   INTEGER NOT NULL,
  signal      TEXT NOT NULL,
  cause       TEXT NOT NULL,
  tokens      INTEGER,           -- NULL: unknown, which is not 0
  usd_cents   INTEGER,
  PRIMARY KEY (task, attempt)
) STRICT, WITHOUT ROWID;

CREATE TABLE events (            -- only ever appended to
  seq  INTEGER PRIMARY KEY AUTOINCREMENT,
  time INTEGER NOT NULL,
  kind TEXT NOT NULL,
  task INTEGER,                  -- tasks.seq; NULL when it is about no task
  data TEXT NOT NULL             -- a JSON object
) STRICT;

CREATE INDEX events_task ON events (task) WHERE task IS NOT NULL;

INSERT INTO files VALUES ('tasks/openclaw_agent_tasks.jsonl', 2049, 77, 1234, 600, x'01', x'02');
INSERT INTO tasks (seq, id, revision, latest, state, attempt, reasons, until, status, kind, put, delivered, replaces, agent, requester,
  type, dialect, hash, result_sum, deadline, received, finished, file, offset) VALUES
  (1, 'report', 1, 0, 'done', 1, '', NULL, 'ok', '', 1, 1, 0, 'openclaw.monitor', 'sre', 'execute_monitor', 'ainl', 'h1', 's1', NULL,
   1773057600000000, 1773057601000000, 'tasks/openclaw_agent_tasks.jsonl', 0),
  (2, 'report', 2, 1, 'held', 0, 'approval,change_window', 1773061200000000, '', '', 0, 0, 1, 'openclaw.monitor', 'sre', 'execute_monitor',
   'ainl', 'h2', '', 253402300799000000, 1773057602000000, NULL, 'tasks/openclaw_agent_tasks.jsonl', 617);
INSERT INTO requests VALUES (1, CAST('{"a":1}' AS BLOB)), (2, CAST('{"a":2}' AS BLOB));
INSERT INTO results VALUES (1, CAST('{"status":"ok"}' AS BLOB));
INSERT INTO runs VALUES (1, 1, 'r-1', 1773057600500000, 42, 99, 'b', 1773057600600000, 1773057600900000, 0, '', '', 7, NULL);
INSERT INTO events (time, kind, task, data) VALUES (1773057600000000, 'task.accepted', 1, '{}'), (1773057600000001, 'line.rejected', NULL, '{"offset":9}');
PRAGMA user_version = 1;
