ALTER TABLE approvals ADD COLUMN proof TEXT NOT NULL DEFAULT ''; -- of the decision, as JSON; '': none
