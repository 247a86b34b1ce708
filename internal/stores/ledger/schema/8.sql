ALTER TABLE redo ADD COLUMN live INTEGER NOT NULL DEFAULT 0; -- 1: the redo log may have what the tables miss, so both of its files are there
