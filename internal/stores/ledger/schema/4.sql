CREATE TABLE deliveries (        -- tasks of agents that fetch them; a lease ends at tasks.until
  task     INTEGER PRIMARY KEY,
  appended INTEGER,              -- when its line was in the inbox file; NULL while that is not known
  claimed  INTEGER,              -- when it was claimed last; NULL for never
  lease    TEXT NOT NULL         -- the token of its last claim; '' without one
) STRICT;
