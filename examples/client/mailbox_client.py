#!/usr/bin/env python3
"""The AINL side of the mailbox: what `agent.send_task` and `agent.read_result` do.

For programs that are not written in AINL, and for trying a daemon out. It needs
Python 3.8 and nothing else, and it knows nothing of mailboxd: two directories
below AINL_AGENT_ROOT are the whole protocol.

    mailbox_client.py send requests.jsonl     prints the task ids
    mailbox_client.py read ID                 prints the result, or fails
    mailbox_client.py wait ID --timeout 60    waits for it first

Exit codes: 0 done, 1 error, 2 usage, 5 no result within the timeout.
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path

DEFAULT_ROOT = "/tmp/ainl_agents"
TASKS = "tasks/openclaw_agent_tasks.jsonl"  # the one file that AINL programs append to
POLL = 0.02  # seconds between two looks


class MailboxError(Exception):
    """What the mailbox does not allow, or could not do."""


class NoResult(MailboxError):
    """There is no result file: the task is not finished, or was never sent."""


def mailbox_root():
    """Returns the mailbox directory, made when it is missing."""
    root = Path(os.environ.get("AINL_AGENT_ROOT") or DEFAULT_ROOT).resolve()
    if root == Path(root.anchor):
        raise MailboxError("AINL_AGENT_ROOT must not be filesystem root")
    root.mkdir(parents=True, exist_ok=True)
    return root


def inside(root, relative):
    """Returns the path below root after all symbolic links; never one outside."""
    target = (root / relative).resolve()
    if root not in target.parents:
        raise MailboxError(f"{relative}: leads out of AINL_AGENT_ROOT")
    return target


def encode(task):
    """Returns the line for a task: sorted keys, ASCII, one newline at the end."""
    if not isinstance(task, dict):
        raise MailboxError("a task must be a JSON object")
    try:
        # AINL's adapter writes NaN as such, which is not JSON: better found here.
        text = json.dumps(task, sort_keys=True, allow_nan=False)
    except (TypeError, ValueError) as bad:
        raise MailboxError(f"a task must be JSON: {bad}") from bad
    return text.encode("ascii") + b"\n"


def append(line):
    """Appends a line in one write, so that lines of several writers never mix."""
    path = inside(mailbox_root(), TASKS)
    path.parent.mkdir(parents=True, exist_ok=True)
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        written = os.write(fd, line)
    finally:
        os.close(fd)
    if written != len(line):  # a full disk; the rest would no longer be beside it
        raise MailboxError(f"{path}: only {written} of {len(line)} bytes were written")


def send_task(task):
    """Appends a task, a dict, and returns its task_id; "" when it has none."""
    append(encode(task))
    return str(task.get("task_id") or "")


def read_result(task_id):
    """Returns the result of a task, a dict. NoResult: there is none (yet)."""
    task_id = str(task_id)
    if "/" in task_id or ".." in task_id:
        raise MailboxError("task_id must not contain path separators")
    try:
        path = inside(mailbox_root(), f"results/{task_id}.json")
        if not path.is_file():
            raise NoResult("target does not exist")
        result = json.loads(path.read_bytes().decode("utf-8"))  # refuses a BOM, too
    except (OSError, ValueError, RecursionError) as bad:
        raise MailboxError(f"result of {task_id!a} cannot be read: {bad}") from bad
    if not isinstance(result, dict):
        raise MailboxError(f"result of {task_id!a} is not a JSON object")
    return result


def wait_result(task_id, timeout):
    """Returns the result of a task once it is there, or raises NoResult.

    What is there already counts: anyone who sends a new task under an old id may
    still find the old result for a moment.
    """
    deadline = time.monotonic() + timeout
    while True:
        try:
            return read_result(task_id)
        except NoResult:
            if time.monotonic() >= deadline:
                raise
        time.sleep(POLL)


def tasks_in(text):
    """Returns the JSON objects in text: one, or one after the other."""
    tasks, decoder, at = [], json.JSONDecoder(), 0
    text = text.strip()
    while at < len(text):
        task, at = decoder.raw_decode(text, at)
        tasks.append(task)
        while at < len(text) and text[at].isspace():
            at += 1
    return tasks


def send_file(name):
    """Sends every task of a file, or none when one of them cannot be."""
    raw = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    tasks = tasks_in(raw.decode("utf-8"))
    for task in tasks:
        encode(task)
    for task in tasks:
        print(visible(send_task(task)))


def visible(text):
    return "".join(c if c.isprintable() else "?" for c in text)


def show(result):
    print(json.dumps(result, indent=2))  # ASCII: safe to show on a terminal


def arguments():
    parser = argparse.ArgumentParser(description="Send tasks to an AINL mailbox and read their results.")
    commands = parser.add_subparsers(dest="command", required=True)
    send = commands.add_parser("send", help="append the tasks of a file and print their ids")
    send.add_argument("file", help="one or more JSON objects; - is standard input")
    read = commands.add_parser("read", help="print the result of a task")
    read.add_argument("task_id")
    wait = commands.add_parser("wait", help="wait for the result of a task and print it")
    wait.add_argument("task_id")
    wait.add_argument("--timeout", type=float, default=60, metavar="SECONDS")
    return parser.parse_args()


def main():
    args = arguments()
    try:
        if args.command == "send":
            send_file(args.file)
        elif args.command == "read":
            show(read_result(args.task_id))
        else:
            show(wait_result(args.task_id, args.timeout))
    except NoResult as missing:
        print(f"mailbox_client: {missing}", file=sys.stderr)
        return 5 if args.command == "wait" else 1
    except (MailboxError, OSError, ValueError, RecursionError) as bad:
        print(f"mailbox_client: {bad}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
