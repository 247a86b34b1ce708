"""A program that one writes in an afternoon: reads a file of task lines as it grows, runs a
program for each in two threads, and writes a result file whole.
usage: poller.py TASKS RESULTS TMP sync|nosync COMMAND..."""
import json
import os
import queue
import subprocess
import sys
import threading
import time

tasks, results, tmp, sync, *command = sys.argv[1:]
todo = queue.Queue()


def work():
    while True:
        task = todo.get()
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, close_fds=False)
        status = "ok" if done.returncode == 0 else "error"
        name = os.path.join(tmp, task["task_id"])
        with open(name, "w") as f:
            json.dump({"task_id": task["task_id"], "status": status}, f)
            if sync == "sync":
                f.flush()
                os.fsync(f.fileno())
        os.rename(name, os.path.join(results, task["task_id"] + ".json"))
        if sync == "sync":
            fd = os.open(results, os.O_RDONLY)
            os.fsync(fd)
            os.close(fd)


for _ in range(2):
    threading.Thread(target=work, daemon=True).start()
with open(tasks) as f:
    while True:
        line = f.readline()
        if line:
            todo.put(json.loads(line))
        else:
            time.sleep(0.005)
