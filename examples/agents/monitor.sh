#!/bin/sh
# openclaw.monitor: looks at the host it runs on. An agent for mailboxd, in sh.
#
# The contract of an exec agent, as it is used here:
#   - the request comes on standard input (and lies in $MAILBOX_TASK_FILE);
#   - the answer is one JSON object on standard output;
#   - a line of JSON appended to $MAILBOX_PROGRESS_FILE is a sign of life;
#   - exit 75 means "not now, try again", as often as `retries` allows.
#
# Nothing of the request is run or repeated: all that is taken from it are two
# whole numbers, ts and disk_limit_percent. This stands in for a monitor of yours;
# the AINL program that the request refers to is not run.
set -eu
LC_ALL=C
export LC_ALL

progress() { # progress PERCENT NOTE, in our own words, so there is nothing to escape
	printf '{"pct":%d,"note":"%s"}\n' "$1" "$2" >>"${MAILBOX_PROGRESS_FILE:-/dev/null}"
}

# number NAME DEFAULT prints the whole number that the request has under NAME. A
# quote inside a JSON string is escaped, so no string can look like a member.
number() {
	value=$(printf '%s\n' "$request" |
		sed -n "s/.*\"$1\"[[:space:]]*:[[:space:]]*\([-+.0-9eE]*\).*/\1/p" | head -n 1)
	case $value in
	'' | *[!0-9]* | 0?* | ????????????*) value=$2 ;; # not whole, or too long to calculate with
	esac
	printf '%s' "$value"
}

request=$(cat)
now=$(date +%s)
sent=$(number ts "$now")
limit=$(number disk_limit_percent 90)

progress 0 'measuring the disk'
used=$(df -P . | awk '{ for (i = 1; i <= NF; i++) if ($i ~ /^[0-9]+%$/) { print $i + 0; exit } }')
if [ -z "$used" ]; then
	echo 'df cannot measure the disk' >&2
	exit 75
fi

progress 50 'measuring the load'
load=null and_load=''
if read -r load _ 2>/dev/null </proc/loadavg; then
	and_load=", load $load"
fi

if [ "$used" -ge "$limit" ]; then
	state='out of bounds' kind=alert action="Free disk space: $used% is used, the limit is $limit%." status=pending
else
	state='within bounds' kind=notification action='No remediation required.' status=skipped
fi
progress 100 'done'

# cost_used is what makes an agent metered. This one asks no model and spends nothing.
cat <<EOF
{
  "status": "ok",
  "output": {
    "summary": "The host is $state: disk $used% used of $limit% allowed$and_load.",
    "actions": [
      {"kind": "check", "description": "Measured disk and load of the host.", "status": "executed"},
      {"kind": "$kind", "description": "$action", "status": "$status"}
    ],
    "disk_used_percent": $used,
    "load_1m": $load,
    "request_age_seconds": $((now - sent))
  },
  "cost_used": {"tokens": 0, "usd_cents": 0}
}
EOF
