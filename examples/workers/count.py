#!/usr/bin/env python3
"""A worker for mailboxd: every line it reads is a task, every line it prints a result."""
import json
import sys

for line in sys.stdin:
    task = json.loads(line)
    words = str(task["input"]["payload"].get("text", "")).split()
    output = {"summary": f"The text has {len(words)} words.", "actions": [], "words": len(words)}
    print(json.dumps({"task_id": task["task_id"], "status": "ok", "output": output}), flush=True)
