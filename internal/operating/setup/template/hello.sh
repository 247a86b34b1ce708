#!/bin/sh
# An agent for mailboxd: the task is on standard input, the answer is what it prints.
name=$(sed -n 's/.*"name": *"\([^"]*\)".*/\1/p')
echo "Hello, ${name:-world}. This is task $MAILBOX_TASK_ID, attempt $MAILBOX_ATTEMPT."
