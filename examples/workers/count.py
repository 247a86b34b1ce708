#!/usr/bin/env python3
"""A worker for mailboxd that counts the words of a text."""
from mailbox_worker import serve


def count(task):
    words = task["input"]["payload"]["text"].split()
    return {"summary": f"The text has {len(words)} words.", "words": len(words)}


serve(count)
