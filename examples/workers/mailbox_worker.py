"""What a worker of mailboxd does besides its work: a line for a task, a line for its result."""
import json
import sys


def serve(do):
    """Calls do(task) for each task, until there are no more. What it returns, an
    object with a "summary", is the output; what it raises is the error."""
    for line in sys.stdin:
        task = json.loads(line)
        result = {"task_id": task["task_id"], "status": "ok"}
        try:
            result["output"] = {"actions": [], **do(task)}
        except Exception as e:  # one bad task is no reason to leave the others
            result["status"] = "error"
            result["error"] = {"kind": "agent_error", "message": f"{type(e).__name__}: {e}"}
        print(json.dumps(result), flush=True)
