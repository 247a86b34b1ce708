package agent

import (
	"fmt"
	"strconv"
	"strings"

	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/toolcall"
)

// passedVariables are inherited by every agent. An agent gets any other variable, such as a
// secret, only if its binding names it.
var passedVariables = []string{"PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ", "TMPDIR", "SHELL"}

// reserved is the prefix of variables about a run.
const reserved = "MAILBOX_"

// inherit returns the part of the environment that is the same in every run:
// passedVariables, then the binding's list. A later entry replaces an earlier one of the
// same name.
func inherit(list []string, ours func(string) (string, bool)) ([]string, *FieldError) {
	var env []string
	for _, name := range passedVariables {
		if value, ok := ours(name); ok {
			env = setVariable(env, name, value)
		}
	}
	for i, entry := range list {
		name, value, given := strings.Cut(entry, "=")
		if err := checkVariable(i, entry); err != nil {
			return nil, err
		}
		if !given {
			if value, given = ours(name); !given {
				continue // not set for the daemon, so not for the agent
			}
		}
		env = setVariable(env, name, value)
	}
	return env, nil
}

func checkVariable(i int, entry string) *FieldError {
	name, _, _ := strings.Cut(entry, "=")
	switch field := fmt.Sprintf("exec.env[%d]", i); {
	case name == "" || strings.ContainsRune(entry, 0):
		return wrong(field, "is neither KEY nor KEY=VALUE")
	case strings.HasPrefix(name, reserved):
		return wrong(field, "names that begin with %s are set by us", reserved)
	}
	return nil
}

func setVariable(env []string, name, value string) []string {
	for i, entry := range env {
		if strings.HasPrefix(entry, name+"=") {
			env[i] = name + "=" + value
			return env
		}
	}
	return append(env, name+"="+value)
}

// environment adds the variables of one run. The runner adds the run directory.
func environment(base []string, j task.Job, f facts) []string {
	env := append(make([]string, 0, len(base)+12), base...)
	env = append(env,
		"MAILBOX_TASK_ID="+string(j.Task.ID),
		"MAILBOX_TASK_FILE="+f.TaskFile,
		"MAILBOX_RESULT_FILE="+f.ResultFile,
		"MAILBOX_PROGRESS_FILE="+f.ProgressFile,
		"MAILBOX_RUN_ID="+f.RunID,
		"MAILBOX_ATTEMPT="+strconv.Itoa(f.Attempt),
		"MAILBOX_DEADLINE="+f.Deadline,
	)
	if f.ToolsRestricted {
		env = append(env, "MAILBOX_ALLOWED_TOOLS="+f.AllowedTools) // also if empty: that means no tools
	}
	if j.Calls != nil {
		env = append(env, "MAILBOX_ANSWERS_FILE="+inDir(j, toolcall.AnswersFile))
	}
	if f.ConversationFile != "" {
		env = append(env, "MAILBOX_CONVERSATION_FILE="+f.ConversationFile)
	}
	if f.SystemFile != "" {
		env = append(env, "MAILBOX_SYSTEM_PROMPT_FILE="+f.SystemFile)
	}
	if dir := artifactsDir(j); dir != "" {
		env = append(env, "MAILBOX_ARTIFACTS_DIR="+dir)
	}
	if f.BudgetTokens != "" {
		env = append(env, "MAILBOX_BUDGET_TOKENS="+f.BudgetTokens)
	}
	if f.BudgetUSDCents != "" {
		env = append(env, "MAILBOX_BUDGET_USD_CENTS="+f.BudgetUSDCents)
	}
	return env
}
