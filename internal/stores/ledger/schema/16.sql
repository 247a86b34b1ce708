CREATE INDEX tasks_held ON tasks (agent, priority DESC, seq, id, state) WHERE state IN ('held', 'waiting', 'review');
