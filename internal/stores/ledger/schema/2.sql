CREATE TABLE pauses (            -- who may start nothing
  agent TEXT PRIMARY KEY,        -- '' for every agent
  since INTEGER NOT NULL
) STRICT;

CREATE TABLE losses (            -- ledgers that could not be read, before this one
  aside TEXT PRIMARY KEY,        -- where it was moved
  at    INTEGER NOT NULL,
  over  INTEGER                  -- when all lines of that time were met again; NULL before
) STRICT;
