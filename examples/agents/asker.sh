#!/bin/sh
# asker: asks before it runs the command that its arguments are. An agent for mailboxd, in sh.
#
# An agent with a section acp in the configuration may ask before each call of a tool:
#   - it appends a line {"ask": {"id", "kind", "title", "command", "paths", "diff", "raw"}} to
#     $MAILBOX_PROGRESS_FILE, in one write; id is its own, and new for each call;
#   - the answer is a line {"id", "decision", "by", "reason"} in $MAILBOX_ANSWERS_FILE, and the
#     decision is allow or reject. It may take as long as a person needs.
set -eu

case $* in
*[!a-zA-Z0-9\ ./_=-]*)
	echo 'asker: this example takes plain words only' >&2
	exit 64
	;;
esac

printf '{"ask":{"id":"1","kind":"execute","title":"Run %s","command":"%s"}}\n' "$1" "$*" >>"$MAILBOX_PROGRESS_FILE"

# The file exists, and is empty until the answer is there. read fails for a part of a line.
until read -r answer <"$MAILBOX_ANSWERS_FILE"; do sleep 0.1; done

case $answer in
*'"decision":"allow"'*)
	"$@"
	printf '{"status":"ok","output":{"summary":"ran %s"}}\n' "$1"
	;;
*)
	printf '{"status":"error","output":{"summary":"was not allowed to run %s"},"error":{"kind":"policy_violation","message":"the call was rejected"}}\n' "$1"
	;;
esac
