ALTER TABLE tasks ADD COLUMN priority INTEGER NOT NULL DEFAULT 0; -- of the tasks that wait, the highest starts first
