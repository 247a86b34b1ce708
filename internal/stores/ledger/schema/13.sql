-- Of a refused caller, the events had the command line, which may hold the cookie of the page.
PRAGMA secure_delete = ON;
UPDATE events SET data = json_set(data, '$.by', substr(data ->> '$.by', 1, instr(data ->> '$.by', ' (') - 1))
WHERE kind IN ('control.refused', 'approval.refused') AND instr(data ->> '$.by', ' (') > 0;
PRAGMA secure_delete = OFF;
