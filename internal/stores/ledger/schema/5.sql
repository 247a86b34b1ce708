CREATE TABLE talks (             -- tasks that somebody hears about in messages, or that hang together
  task    INTEGER PRIMARY KEY,   -- tasks.seq
  message TEXT NOT NULL,         -- the message that asked for it, by the name its sender gave it
  thread  TEXT NOT NULL,         -- which conversation it is part of
  trace   TEXT NOT NULL,         -- which chain of work, over many of them
  tie     TEXT NOT NULL,         -- how it belongs to its parent; '' as AINL has it
  told    INTEGER NOT NULL,      -- events.seq up to which its requester was told
  open    INTEGER NOT NULL,      -- 1: there may be more to tell
  rounds  INTEGER NOT NULL       -- how often its overseer has sent it back
) STRICT;

CREATE INDEX talks_open ON talks (task) WHERE open = 1;
CREATE INDEX talks_thread ON talks (thread) WHERE thread <> '';
CREATE INDEX talks_trace ON talks (trace) WHERE trace <> '';

CREATE TABLE messages (          -- what was said: taken in, said by a run, or said by us
  seq       INTEGER PRIMARY KEY AUTOINCREMENT,
  time      INTEGER NOT NULL,
  dialect   TEXT NOT NULL,
  act       TEXT NOT NULL,
  message   TEXT NOT NULL,       -- its name, '' where messages have none
  cause     TEXT NOT NULL,       -- the name of the message that it is a reply to
  task      INTEGER NOT NULL,    -- tasks.seq of the task that it asks for or is about; 0 for none
  thread    TEXT NOT NULL,
  trace     TEXT NOT NULL,
  sender    TEXT NOT NULL,
  recipient TEXT NOT NULL,       -- with commas between several
  via       TEXT NOT NULL,       -- how it came: line, run, socket; ours: daemon
  hash      TEXT NOT NULL,       -- names its content
  lost      TEXT NOT NULL,       -- what its dialect had no words for, with commas between
  inbox     TEXT NOT NULL,       -- the file below the root that its line is for; '' for none
  posted    INTEGER,             -- when its line was appended there; NULL: not yet
  body      BLOB NOT NULL        -- the line
) STRICT;

CREATE INDEX messages_message ON messages (message) WHERE message <> '';
CREATE INDEX messages_cause ON messages (cause) WHERE cause <> '';
CREATE INDEX messages_hash ON messages (hash);
CREATE INDEX messages_task ON messages (task) WHERE task <> 0;
CREATE INDEX messages_thread ON messages (thread) WHERE thread <> '';
CREATE INDEX messages_trace ON messages (trace) WHERE trace <> '';
CREATE INDEX messages_due ON messages (seq) WHERE inbox <> '' AND posted IS NULL;

CREATE TABLE speakers (          -- who has announced what it can do
  name     TEXT PRIMARY KEY,
  supports TEXT NOT NULL,        -- a JSON array of strings
  since    INTEGER NOT NULL
) STRICT;
