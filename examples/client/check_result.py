#!/usr/bin/env python3
"""Holds result files against the rules that AINL publishes for AgentTaskResult.

    check_result.py results/*.json     says what is wrong; exit 1 if anything is

The rules: a JSON object in UTF-8; schema_version, task_id, agent_id and status are
strings; output is an object with a string summary and a list of actions, each an
object whose kind, description and status are strings.
"""

import json
import sys


def check(result):
    """Returns what is wrong with a result, one sentence each; [] is fine."""
    if not isinstance(result, dict):
        return ["must be an object"]
    issues = strings(result, "", "schema_version", "task_id", "agent_id", "status")
    output = result.get("output")
    if not isinstance(output, dict):
        return issues + ["output: must be an object"]
    issues += strings(output, "output.", "summary")
    actions = output.get("actions")
    if not isinstance(actions, list):
        return issues + ["output.actions: must be a list"]
    for i, action in enumerate(actions):
        if isinstance(action, dict):
            issues += strings(action, f"output.actions[{i}].", "kind", "description", "status")
        else:
            issues.append(f"output.actions[{i}]: must be an object")
    return issues


def strings(holder, where, *names):
    return [f"{where}{name}: must be a string" for name in names if not isinstance(holder.get(name), str)]


def refuse(word):
    raise ValueError(f"{word} is not JSON")


def check_file(name):
    try:
        with open(name, encoding="utf-8") as file:
            return check(json.load(file, parse_constant=refuse))
    except (OSError, ValueError, RecursionError) as bad:
        return [str(bad)]


def main():
    if len(sys.argv) < 2:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    status = 0
    for name in sys.argv[1:]:
        issues = check_file(name)
        for issue in issues or ["ok"]:
            print(f"{name}: {issue}")
        status = status or int(bool(issues))
    return status


if __name__ == "__main__":
    sys.exit(main())
