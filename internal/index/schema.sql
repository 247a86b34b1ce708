-- The index is derived from the journal: it may be deleted, and is built again.
-- Times are microseconds since 1970 in UTC, or NULL. A place says where in the
-- journal a body is; '' is nowhere.

CREATE TABLE tasks (             -- one row for each revision
  seq        INTEGER PRIMARY KEY,
  id         TEXT NOT NULL,
  revision   INTEGER NOT NULL,
  latest     INTEGER NOT NULL,   -- 1 for the highest revision of its id
  hash       TEXT NOT NULL,
  dialect    TEXT NOT NULL,
  state      TEXT NOT NULL,
  attempt    INTEGER NOT NULL,
  reasons    TEXT NOT NULL,      -- why it is held, with commas between
  until      INTEGER,
  agent      TEXT NOT NULL,
  requester  TEXT NOT NULL,
  type       TEXT NOT NULL,
  deadline   INTEGER,
  received   INTEGER,
  finished   INTEGER,
  file       TEXT NOT NULL,
  offset     INTEGER NOT NULL,
  status     TEXT NOT NULL,
  kind       TEXT NOT NULL,
  result_sum TEXT NOT NULL,
  put        INTEGER NOT NULL,   -- 1: its result file is in place
  delivered  INTEGER NOT NULL,   -- 1: its callbacks are done
  replaces   INTEGER NOT NULL,   -- 1: the earlier result is not in the history yet
  parent     INTEGER NOT NULL,   -- tasks.seq; 0 for none
  depth      INTEGER NOT NULL,   -- how many parents are above it
  request    TEXT,               -- the place of the line as it came
  result     TEXT,               -- the place of the result file
  UNIQUE (id, revision)
) STRICT;

-- Both have few rows however many tasks are done.
CREATE INDEX tasks_open ON tasks (seq, state) WHERE state <> 'done';
CREATE INDEX tasks_unsettled ON tasks (seq) WHERE state = 'done' AND (put = 0 OR delivered = 0);
CREATE INDEX tasks_children ON tasks (parent) WHERE parent <> 0;

CREATE TABLE runs (
  task            INTEGER NOT NULL,
  attempt         INTEGER NOT NULL,
  run_id          TEXT NOT NULL,
  intent          INTEGER,
  pid             INTEGER NOT NULL, -- 0 until it is known
  pid_start       INTEGER NOT NULL,
  boot            TEXT NOT NULL,
  started         INTEGER,
  finished        INTEGER,
  exit_code       INTEGER NOT NULL,
  signal          TEXT NOT NULL,
  cause           TEXT NOT NULL,
  tokens          INTEGER,       -- NULL: unknown, which is not 0
  usd_cents       INTEGER,
  terms           TEXT NOT NULL, -- a JSON object
  reserved_tokens INTEGER,       -- what it may spend; NULL: no limit
  reserved_cents  INTEGER,
  lender          INTEGER NOT NULL, -- tasks.seq of the run that lent it that; 0 for none
  lender_attempt  INTEGER NOT NULL,
  settled         INTEGER NOT NULL, -- 1: it is over, and its spending is counted
  PRIMARY KEY (task, attempt)
) STRICT, WITHOUT ROWID;

CREATE TABLE approvals (         -- what a person was asked for, and the decision
  seq      INTEGER PRIMARY KEY,
  task     INTEGER NOT NULL,
  stage    TEXT NOT NULL,        -- pre: before a run; post: before its result is shown
  digest   TEXT NOT NULL,        -- names what exactly it is about
  plan     TEXT NOT NULL,        -- and says it, as a JSON object; '' after a run
  approver TEXT NOT NULL,        -- the only one who may decide; '' for any approver
  asked    INTEGER,
  expires  INTEGER,              -- NULL: never by itself
  decision TEXT NOT NULL,        -- '' while it is open
  decided  INTEGER,
  decider  TEXT NOT NULL,
  note     TEXT NOT NULL,
  answer   TEXT                  -- the place of the result that was not to be shown
) STRICT;

CREATE INDEX approvals_task ON approvals (task);

CREATE TABLE deliveries (        -- tasks of agents that fetch them; a lease ends at tasks.until
  task     INTEGER PRIMARY KEY,
  appended INTEGER,              -- when its line was in the inbox file; NULL while that is not known
  claimed  INTEGER,              -- when it was claimed last; NULL for never
  lease    TEXT NOT NULL         -- the token of the last claim; '' for none
) STRICT;

CREATE TABLE conversations (
  task     INTEGER PRIMARY KEY,  -- tasks.seq
  message  TEXT NOT NULL,        -- the id of the message that asked for it
  thread   TEXT NOT NULL,
  trace    TEXT NOT NULL,
  tie      TEXT NOT NULL,        -- how it belongs to its parent; '' as AINL has it
  notified INTEGER NOT NULL,     -- events.seq up to which its requester was notified
  open     INTEGER NOT NULL,     -- 1: there may be more to notify
  rounds   INTEGER NOT NULL      -- how often its overseer has sent it back
) STRICT;

CREATE INDEX conversations_open ON conversations (task) WHERE open = 1;
CREATE INDEX conversations_thread ON conversations (thread) WHERE thread <> '';
CREATE INDEX conversations_trace ON conversations (trace) WHERE trace <> '';

CREATE TABLE messages (
  seq       INTEGER PRIMARY KEY,
  time      INTEGER,
  dialect   TEXT NOT NULL,
  act       TEXT NOT NULL,
  message   TEXT NOT NULL,       -- its id, '' where messages have none
  cause     TEXT NOT NULL,       -- the id of the message that it replies to
  task      INTEGER NOT NULL,    -- tasks.seq of the task that it asks for or is about; 0 for none
  thread    TEXT NOT NULL,
  trace     TEXT NOT NULL,
  sender    TEXT NOT NULL,
  recipient TEXT NOT NULL,       -- with commas between several
  via       TEXT NOT NULL,       -- how it came: line, run, socket, or daemon
  hash      TEXT NOT NULL,       -- names its content
  lost      TEXT NOT NULL,       -- what its dialect could not express, with commas between
  inbox     TEXT NOT NULL,       -- the file below the root that its line is for; '' for none
  delivered INTEGER,             -- when its line was appended there; NULL: not yet
  body      TEXT                 -- the place of the line
) STRICT;

CREATE INDEX messages_message ON messages (message) WHERE message <> '';
CREATE INDEX messages_cause ON messages (cause) WHERE cause <> '';
CREATE INDEX messages_hash ON messages (hash);
CREATE INDEX messages_task ON messages (task) WHERE task <> 0;
CREATE INDEX messages_thread ON messages (thread) WHERE thread <> '';
CREATE INDEX messages_trace ON messages (trace) WHERE trace <> '';
CREATE INDEX messages_due ON messages (seq) WHERE inbox <> '' AND delivered IS NULL;

CREATE TABLE announcements (     -- what requesters and agents have announced that they can do
  name     TEXT PRIMARY KEY,
  supports TEXT NOT NULL,        -- a JSON array of strings
  since    INTEGER
) STRICT;

CREATE TABLE accounts (          -- what was spent of a budget, and what is reserved of it
  owner           TEXT NOT NULL, -- requester:x, agent:y
  day             TEXT NOT NULL, -- 2026-03-09, in UTC
  limit_tokens    INTEGER,       -- as the latest run under it found it; NULL: none
  limit_cents     INTEGER,
  reserved_tokens INTEGER NOT NULL,
  reserved_cents  INTEGER NOT NULL,
  spent_tokens    INTEGER NOT NULL,
  spent_cents     INTEGER NOT NULL,
  unknown         INTEGER NOT NULL, -- runs that count as they were reserved: their spending is unknown
  PRIMARY KEY (owner, day)
) STRICT, WITHOUT ROWID;

CREATE TABLE pauses (            -- which agents may start nothing
  agent TEXT PRIMARY KEY,        -- '' for every agent
  since INTEGER
) STRICT;

CREATE TABLE files (             -- how far each task file was read
  path   TEXT PRIMARY KEY,       -- tasks/x.jsonl
  dev    INTEGER NOT NULL,
  inode  INTEGER NOT NULL,
  offset INTEGER NOT NULL,
  replay INTEGER NOT NULL,
  head   BLOB,
  tail   BLOB
) STRICT;

CREATE TABLE dead_letters (      -- lines that were not appended to rejected/ yet
  seq  INTEGER PRIMARY KEY,
  line BLOB
) STRICT;

CREATE TABLE losses (            -- ledgers that could not be read, before this one
  aside TEXT PRIMARY KEY,        -- where it was moved
  at    INTEGER,
  over  INTEGER                  -- when all lines of that time were met again; NULL before
) STRICT;

CREATE TABLE events (
  seq  INTEGER PRIMARY KEY,      -- the event's number in the journal
  time INTEGER,
  kind TEXT NOT NULL,
  task INTEGER,                  -- tasks.seq; NULL when it is about no task
  data TEXT NOT NULL             -- a JSON object
) STRICT;

CREATE INDEX events_task ON events (task) WHERE task IS NOT NULL;

CREATE TABLE mark (              -- one row: the position in the journal up to which the index has everything
  n       INTEGER NOT NULL,
  hash    TEXT NOT NULL,
  segment INTEGER NOT NULL,
  offset  INTEGER NOT NULL
) STRICT;
