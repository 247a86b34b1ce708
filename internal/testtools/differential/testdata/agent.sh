#!/bin/sh
# The agents of the scenarios: agent.sh PART. A part that waits says so in marks/
# and goes on when somebody writes a word into its gate.
here=${0%/*}
id=$MAILBOX_TASK_ID

wait_for_word() {
	[ -p "$here/gates/$id" ] || mkfifo "$here/gates/$id"
	: >"$here/marks/$id.$MAILBOX_ATTEMPT"
	read -r word <"$here/gates/$id"
}

obey() {
	case $1 in
	fail) echo "it went wrong" >&2; exit 3 ;;
	again) exit 75 ;;
	die) kill -9 $$ ;;
	junk) echo '{"half' ;;
	*) echo '{"status":"ok","output":{"summary":"told: '"$1"'","actions":[]}}' ;;
	esac
}

case $1 in
text) echo "plain words about $id" ;;
json) echo '{"summary":"an object","actions":[],"count":3}' ;;
envelope) echo '{"status":"ok","confidence":0.5,"output":{"summary":"an envelope","actions":[{"kind":"write","description":"a file","status":"executed"}]},"cost_used":{"tokens":40,"usd_cents":2}}' ;;
costly) echo '{"status":"ok","output":{"summary":"costly","actions":[]},"cost_used":{"tokens":700,"usd_cents":9}}' ;;
partial) echo '{"status":"partial","output":{"summary":"half of it","actions":[],"tools_used":["http"]}}' ;;
refuses) echo '{"status":"error","output":{"summary":"no","actions":[]},"error":{"kind":"validation_failed","message":"the figures are wrong"}}' ;;
file) echo "chatting"; echo '{"status":"ok","output":{"summary":"in the file","actions":[]}}' >"$MAILBOX_RESULT_FILE" ;;
fails) echo "cannot do it" >&2; echo '{"summary":"half","actions":[]}'; exit 3 ;;
junk) echo 'segmentation fault {"' ;;
stubborn) exit 75 ;;
second) [ "$MAILBOX_ATTEMPT" -gt 1 ] || exit 75; echo "in attempt $MAILBOX_ATTEMPT" ;;
careless) [ "$MAILBOX_ATTEMPT" -gt 1 ] || kill -9 $$; echo '{"status":"ok","output":{"summary":"survived","actions":[]}}' ;;
hangs) exec sleep 1000 ;;
progress) echo '{"pct":40,"note":"reading"}' >>"$MAILBOX_PROGRESS_FILE"; wait_for_word; obey "$word" ;;
slow) wait_for_word; obey "$word" ;;
worker)
	while read -r line; do
		id=${line#*\"task_id\":\"}
		id=${id%%\"*}
		case $line in
		*'"die"'*) exit 9 ;;
		*'"again"'*) echo '{"task_id":"'"$id"'","status":"error","output":{"summary":"no","actions":[]},"error":{"kind":"agent_error","message":"not today"}}' ;;
		*) echo '{"task_id":"'"$id"'","status":"ok","output":{"summary":"by a worker","actions":[]}}' ;;
		esac
	done
	;;
*) . "$here/talk.sh" ;;
esac
