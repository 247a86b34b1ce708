CREATE TABLE trees (             -- the run of a tree of tasks, where it is not the id of the first task
  id  TEXT PRIMARY KEY,          -- tasks.id of the first task
  run TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX trees_run ON trees (run);

INSERT INTO trees SELECT t.id, k.trace FROM talks k JOIN tasks t ON t.seq = k.task
  WHERE t.parent = 0 AND t.latest = 1 AND k.trace <> '' AND k.trace <> t.id;
