#!/bin/sh
# tally: an agent for mailboxd that speaks CLowl, in sh. It counts what was said.
#
# The contract of an agent with `dialect: clowl`, as it is used here:
#   - the conversation comes on standard input (and lies in $MAILBOX_CONVERSATION_FILE):
#     a CLowl message a line, the request first, from any requester and in any dialect;
#   - the answer is a CLowl message on standard output. Its ids, times and traces are
#     the mailbox's to supply, so the short form is enough: p, task and data;
#   - DONE is the answer, ERR says that there is none.
set -eu

count() { # count PERFORMATIVE prints how many messages have it
	printf '%s\n' "$conversation" | grep -c "\"p\":[[:space:]]*\"$1\"" || true
}

conversation=$(cat)
if [ -z "$conversation" ]; then
	echo '{"p":"ERR","task":"error","data":{"code":"E007","msg":"There is no conversation.","retry":true}}'
	exit
fi
messages=$(printf '%s\n' "$conversation" | grep -c .)
printf '{"p":"DONE","task":"tally","data":{"summary":"%d messages so far, %d of them for information.","messages":%d}}\n' \
	"$messages" "$(count INF)" "$messages"
