CREATE INDEX tasks_held ON tasks (agent, priority DESC, seq, id, state) WHERE state IN ('held', 'waiting', 'review');

ALTER TABLE waits ADD COLUMN needs TEXT NOT NULL DEFAULT ''; -- how much of a budget
