-- Spelled with OR: for IN, SQLite makes a table of the three words in each write of a task.
DROP INDEX tasks_held;
CREATE INDEX tasks_held ON tasks (agent, priority DESC, seq, id, state) WHERE state = 'held' OR state = 'waiting' OR state = 'review';
