-- The runner that has a run; '' for one on this machine.
ALTER TABLE runs ADD COLUMN runner TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN incarnation TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN token TEXT NOT NULL DEFAULT '';
