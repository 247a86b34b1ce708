#!/usr/bin/env python3
"""An agent that brings the events of a LangGraph-like graph into Clutch.

A graph of LangGraph yields events such as those of astream_events(version="v2").
Replace graph() by yours; nothing else here knows the framework. mailboxd adds what
a message lacks: v, id, ts, run_id, thread_id, task_id, from and to.
"""

import json
import sys


def graph(question):
    """Stands for graph.astream_events({"question": question}, version="v2")."""
    yield {"event": "on_chain_start", "name": "LangGraph", "data": {"input": {"question": question}}}
    yield {"event": "on_chain_start", "name": "search", "metadata": {"langgraph_node": "search", "langgraph_step": 1}}
    yield {"event": "on_tool_end", "name": "browser", "data": {"output": "3 pages"}}
    yield {"event": "on_chain_start", "name": "write", "metadata": {"langgraph_node": "write", "langgraph_step": 2}}
    found = {"findings": [f"Nobody else answers: {question}"], "citations": ["https://example.com/market"]}
    yield {"event": "on_chain_end", "name": "LangGraph", "data": {"output": found}}


def say(kind, payload, **more):
    print(json.dumps({"type": kind, **more, "payload": payload}), flush=True)


def translate(event, node_count=2):
    node = event.get("metadata", {}).get("langgraph_node")
    if event["event"] == "on_chain_start" and node:
        done = 100 * (event["metadata"]["langgraph_step"] - 1) // node_count
        say("task.progress", {"status": "running", "progress": done, "message": f"node {node}"})
    elif event["event"] == "on_tool_end":
        say("task.progress", {"status": "running", "message": f"{event['name']}: {event['data']['output']}"})
    elif event["event"] == "on_chain_end" and event["name"] == "LangGraph":
        say("task.result", event["data"]["output"], domain="research", payload_type="research.summary.v1")


request = json.loads(sys.stdin.readline())  # the task.request; the conversation may follow
try:
    for event in graph(request["payload"]["title"]):
        translate(event)
except Exception as error:  # a graph that fails is a task.error, with a word on another attempt
    say("task.error", {"code": "AGENT_ERROR", "message": str(error), "retryable": False})
