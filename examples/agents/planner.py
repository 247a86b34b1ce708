#!/usr/bin/env python3
"""planner: an agent for mailboxd that speaks CAP, and asks before it answers.

The contract of an agent with `dialect: cap`, as it is used here:

  - the conversation comes on standard input (and lies in
    $MAILBOX_CONVERSATION_FILE): a CAP message a line, the request first;
  - it prints messages, one JSON object a line, and exits. What it leaves out, its
    own name, the task and the recipient, comes from mailboxd;
  - a message to the requester is the answer. One to somebody else is a question:
    the task waits, and the agent is run again when there is a reply. A question to
    the requester says "expects_reply": true, or it would be the answer.

A model would stand where this looks for a word.
"""

import json
import sys

MARKETS = ("europe", "america", "asia")


def market_in(messages):
    """The market that somebody else has named last, if anybody has."""
    for message in reversed(messages):
        text = (message.get("content") or message.get("context_summary") or "").lower()
        for market in MARKETS:
            if market in text:
                return market
    return None


def main():
    conversation = [json.loads(line) for line in sys.stdin if line.strip()]
    me = conversation[0]["recipient_id"]
    market = market_in([m for m in conversation if m["sender_id"] != me])
    if market is None:
        question = "Which market: " + ", ".join(MARKETS) + "?"
        print(json.dumps({"type": "message", "recipient_id": "user", "content": question}))
        return
    print(json.dumps({
        "type": "message",
        "content": f"The plan is for {market}: collect the numbers, compare them, report.",
        "attachments": [{"type": "python_object", "object": {"market": market, "steps": 3}}],
    }))


main()
