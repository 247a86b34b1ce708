CREATE TABLE dead_letters (      -- lines that were not appended to rejected/ yet
  seq  INTEGER PRIMARY KEY AUTOINCREMENT, -- the order in which they came; never given twice
  line BLOB NOT NULL
) STRICT;
