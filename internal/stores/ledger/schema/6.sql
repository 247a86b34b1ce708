CREATE TABLE redo (              -- one row
  applied INTEGER NOT NULL       -- up to which frame of the redo log the tables have everything
) STRICT;

-- Frames of one ledger never follow those of another by chance.
INSERT INTO redo (applied) VALUES (abs(random() % 4611686018427387904));
