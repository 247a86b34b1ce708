CREATE TABLE redo (              -- one row: up to which frame of the redo log the tables have everything
  applied INTEGER NOT NULL
) STRICT;

INSERT INTO redo (applied) VALUES (0);
