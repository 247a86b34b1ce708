#!/usr/bin/env python3
"""An agent that brings the messages of an AutoGen-like team into Clutch.

A team of AutoGen yields messages and a TaskResult from run_stream(task=...).
Replace team() by yours; nothing else here knows the framework. mailboxd adds what
a message lacks: v, id, ts, run_id, thread_id, task_id, from and to.
"""

import json
import sys


def team(task):
    """Stands for team.run_stream(task=task)."""
    yield {"type": "TextMessage", "source": "user", "content": task}
    yield {"type": "ToolCallRequestEvent", "source": "critic", "content": [{"name": "read_summary", "arguments": "{}"}]}
    yield {"type": "TextMessage", "source": "critic", "content": "The findings have a source."}
    yield {"type": "TextMessage", "source": "editor", "content": "APPROVE"}
    yield {"type": "TaskResult", "stop_reason": "Text 'APPROVE' mentioned"}


def say(kind, payload, **more):
    print(json.dumps({"type": kind, **more, "payload": payload}), flush=True)


def feedback(said, stop_reason):
    approved = any(text == "APPROVE" for _, text in said)
    comments = "; ".join(f"{source}: {text}" for source, text in said)
    blocking = [] if approved else [stop_reason]
    return {"decision": "approved" if approved else "rejected", "comments": comments, "blocking_issues": blocking}


request = json.loads(sys.stdin.readline())  # the task.request; the conversation may follow
said = []
for message in team(request["payload"]["title"]):
    if message["type"] == "TextMessage" and message["source"] != "user":
        said.append((message["source"], message["content"]))
        say("task.progress", {"status": "running", "message": f"{message['source']}: {message['content']}"})
    elif message["type"] == "ToolCallRequestEvent":
        tools = ", ".join(call["name"] for call in message["content"])
        say("task.progress", {"status": "running", "message": f"{message['source']} uses {tools}"})
    elif message["type"] == "TaskResult":
        say("task.result", feedback(said, message["stop_reason"]), domain="review", payload_type="review.feedback.v1")
