#!/usr/bin/env python3
"""cursor.advisor and cursor.ops_advisor: advice that is worked out, not guessed.

An agent for mailboxd, with Python's standard library alone. The contract of an
exec agent, as it is used here:

  - the request comes on standard input (and lies in $MAILBOX_TASK_FILE);
  - the answer is one JSON object in $MAILBOX_RESULT_FILE, or on standard output;
  - a line of JSON appended to $MAILBOX_PROGRESS_FILE is a sign of life;
  - exit 75 means "not now, try again", as often as `retries` allows.

An advisor proposes and does nothing, so its actions are all "pending". What
stands in the payload is data from a stranger: it is checked before it is
calculated with, and shortened before it is repeated.
"""

import json
import os
import sys
from datetime import datetime

TRY_AGAIN = 75  # EX_TEMPFAIL of sysexits.h
ALERT_SHARE = 0.8  # of the daily limit
MOST = 10  # of a list that a person reads
WORSE = ["ok", "other", "warning", "error"]  # of a monitor, from good to bad


class BadRequest(Exception):
    """Names the field that cannot be used, and says why."""


def take(holder, name, kind, where="input.payload"):
    """Returns a member that must be there and of a kind; true is no number."""
    value = holder.get(name)
    if not isinstance(value, kind) or isinstance(value, bool):
        what = {dict: "an object", list: "a list", str: "a string"}.get(kind, "a number")
        raise BadRequest(f"{where}.{name}: must be {what}")
    return value


def amount(holder, name, where="input.payload"):
    """Returns a number that can be calculated with: no infinity, no giant."""
    value = take(holder, name, (int, float), where)
    if not 0 <= value <= 10**12:
        raise BadRequest(f"{where}.{name}: must be from 0 to 10^12")
    return value


def brief(value):
    """Returns text that is safe to repeat: printable and short."""
    text = "".join(c if c.isprintable() else "?" for c in str(value)[:81])
    return text if len(text) <= 80 else text[:77] + "..."


def propose(kind, description):
    return {"kind": kind, "description": description, "status": "pending"}


def cost_advice(payload):
    """Reviews one day of token use against its limit."""
    spent, limit = amount(payload, "total_cost_usd"), amount(payload, "daily_limit_usd")
    prompt, completion = amount(payload, "prompt_tokens"), amount(payload, "completion_tokens")
    tokens = amount(payload, "total_tokens")

    summary = f"{spent:,.2f} of {limit:,.2f} USD spent for {tokens:,.0f} tokens"
    if limit and tokens:
        price = spent / tokens * 1000
        summary += f": {spent / limit:.1%} of the limit, {price:.4f} USD per 1,000 tokens"
    actions = []
    if prompt + completion != tokens:
        actions.append(propose("verify", f"Check the counters: {prompt:,.0f} prompt and "
                               f"{completion:,.0f} completion tokens are not {tokens:,.0f}."))
    if spent >= limit:
        actions.append(propose("cap", "Defer what can wait: nothing is left, "
                               f"{spent - limit:,.2f} USD are over."))
    elif spent >= ALERT_SHARE * limit:
        actions.append(propose("cap", f"Cap what can wait: {limit - spent:,.2f} USD are left."))
    else:
        actions.append(propose("alert", f"No cap is needed; alert at {ALERT_SHARE * limit:,.2f} USD, "
                               f"{ALERT_SHARE:.0%} of the limit."))
    if prompt >= 2 * completion > 0:
        actions.append(propose("optimize", f"Shorten or cache prompts first: they have "
                               f"{prompt / completion:,.1f} times the tokens of completions; "
                               f"a tenth less saves {prompt / 10:,.0f} tokens."))
    models = payload.get("top_models")
    if isinstance(models, list) and models:
        names = ", ".join(brief(m) for m in models[:MOST])
        actions.append(propose("measure", f"Record the cost by model: {names} are named without figures, "
                               "so none can be singled out."))
    return summary + ".", actions


def instant(text):
    """Returns a point in time, or None for what is none, or has no zone."""
    try:
        when = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except (AttributeError, ValueError):
        return None
    return when if when.tzinfo else None


def monitors_of(payload):
    """Returns the monitors of a snapshot, checked."""
    monitors = []
    for i, monitor in enumerate(take(payload, "monitors", list)):
        where = f"input.payload.monitors[{i}]"
        if not isinstance(monitor, dict):
            raise BadRequest(f"{where}: must be an object")
        status = take(monitor, "status", str, where)
        monitors.append({
            "id": brief(take(monitor, "id", str, where)),
            "service": brief(monitor.get("service", "no service")),
            "status": status if status in WORSE else "other",
            "errors": amount(monitor, "recent_error_count", where),
            "last_ok": instant(monitor.get("last_ok")),
            "last_error": instant(monitor.get("last_error")),
        })
    return monitors


def story(monitor):
    """Says in words how a monitor stands."""
    words = f"{monitor['status']}, recent errors: {monitor['errors']:,.0f}"
    ok, error = monitor["last_ok"], monitor["last_error"]
    if ok and error:
        minutes = abs(ok - error).total_seconds() / 60
        words += f", last ok {minutes:,.0f} minutes {'after' if ok > error else 'before'} the last error"
    return words


def monitor_advice(payload):
    """Reviews a snapshot of monitors and says which to look at first."""
    monitors = monitors_of(payload)
    counts = {word: sum(m["status"] == word for m in monitors) for word in WORSE}
    told = payload.get("summary") if isinstance(payload.get("summary"), dict) else {}
    actions = []
    for word, count in dict(counts, total=len(monitors)).items():
        claim = told.get(f"monitors_{word}", count)
        if claim != count:
            actions.append(propose("verify", f"Check the snapshot: its summary says monitors_{word} is "
                                   f"{brief(claim)}, its list has {count}."))
    suspects = [m for m in monitors if m["status"] != "ok" or m["errors"]]
    suspects.sort(key=lambda m: (-WORSE.index(m["status"]), -m["errors"], m["id"]))
    for m in suspects[:MOST]:
        actions.append(propose("manual_check", f"Look at {m['id']} ({m['service']}): {story(m)}."))

    words = [f"{count} {word}" for word, count in counts.items() if count or word != "other"]
    summary = f"{len(monitors)} monitors: {', '.join(words)}."
    if not suspects:
        return summary + " None needs a check.", actions
    return f"{summary} Look at {suspects[0]['id']} first.", actions


ADVICE = {
    "advisory_token_cost_review": cost_advice,
    "advisory_monitor_status_review": monitor_advice,
}


def answer(request):
    """Returns the AgentTaskResult, with the fields that an agent sets."""
    error = None
    try:
        advise = ADVICE.get(request.get("task_type"))
        if advise is None:
            raise BadRequest(f"task_type: must be one of {', '.join(ADVICE)}")
        summary, actions = advise(take(request["input"], "payload", dict, "input"))
    except BadRequest as bad:
        error, summary, actions = str(bad), f"No advice is possible. {bad}", []
    return {
        "status": "error" if error else "ok",
        "output": {"summary": summary, "actions": actions},
        "error": {"kind": "invalid_envelope" if error else None, "message": error},
        "cost_used": {"tokens": 0, "usd_cents": 0},  # no model was asked
    }


def progress(percent, note):
    with open(os.environ.get("MAILBOX_PROGRESS_FILE") or os.devnull, "a", encoding="ascii") as file:
        file.write(json.dumps({"pct": percent, "note": note}) + "\n")


def deliver(result):
    """Puts the answer, whole or not at all."""
    path = os.environ.get("MAILBOX_RESULT_FILE")
    if not path:
        print(json.dumps(result, indent=2))
        return
    with open(path + ".part", "w", encoding="ascii") as file:
        json.dump(result, file)
    os.replace(path + ".part", path)


def main():
    try:
        request = json.load(sys.stdin.buffer)
        progress(50, "read the request")
        deliver(answer(request))
        progress(100, "answered")
    except OSError as trouble:  # a full disk, say: it may pass
        print(f"advisor: {trouble}", file=sys.stderr)
        return TRY_AGAIN
    except ValueError as bad:  # such as a number of 5,000 digits
        print(f"advisor: the request cannot be read: {bad}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
