ALTER TABLE tasks ADD COLUMN due INTEGER; -- when the task is looked at again, as the core says; NULL: at no time

UPDATE tasks SET due = CASE
    WHEN state = 'queued' THEN deadline
    WHEN state = 'waiting' THEN coalesce(min(until, deadline), until, deadline)
    WHEN state = 'held' AND ',' || reasons || ',' LIKE '%,same_command,%' THEN deadline
    WHEN state = 'held' AND reasons = 'capacity' AND until IS NOT deadline THEN NULL -- a pause
    WHEN state = 'held' OR state = 'review' THEN until
  END
  WHERE state <> 'done' AND (until IS NOT NULL OR deadline IS NOT NULL);

CREATE INDEX tasks_due ON tasks (due) WHERE due IS NOT NULL;
