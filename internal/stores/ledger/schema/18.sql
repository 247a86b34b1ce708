CREATE TABLE artifacts (         -- which tasks published an artifact or name it
  digest      TEXT NOT NULL,     -- its SHA-256
  task        INTEGER NOT NULL,  -- tasks.seq
  published   INTEGER NOT NULL,  -- 0: the request or the result names it
  sensitivity INTEGER NOT NULL,  -- of the task that published it
  name        TEXT NOT NULL,     -- of the file in the run
  size        INTEGER NOT NULL,
  time        INTEGER NOT NULL,
  PRIMARY KEY (digest, task, published)
) STRICT, WITHOUT ROWID;

CREATE INDEX artifacts_named ON artifacts (task) WHERE published = 0;
