package main

import (
	"time"

	"github.com/spf13/cobra"

	"mailboxd/envelope"
	"mailboxd/internal/cli/exit"
)

// termFlags are the optional terms of a task.
type termFlags struct {
	approval, approver string
	deadline           string
	tokens, cents      int64
	tools              []string
	sensitivity        string
	changeWindow       string
	environment        string
	labels             []string
	after, ifFailed    string
	priority           int

	workdir  string // not a flag of send
	worktree bool
	edit     bool
	base     string

	continues envelope.ID // the task whose session this one continues
}

// termFlagNames are the names of the flags of termFlags.
var termFlagNames = []string{"approval", "approver", "deadline", "tokens", "usd-cents", "tools", "sensitivity", "change-window", "environment", "label", "after", "if-failed", "priority"}

func (f *termFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.approval, "approval", "", "approval_required: none, pre, post or both")
	flags.StringVar(&f.approver, "approver", "", "human_approver: the only approver")
	flags.StringVar(&f.deadline, "deadline", "", "deadline: a time such as 2026-03-09T23:00:00Z, or 30m from now")
	flags.Int64Var(&f.tokens, "tokens", 0, "budget_limit.tokens: the limit of tokens")
	flags.Int64Var(&f.cents, "usd-cents", 0, "budget_limit.usd_cents: the limit of cost")
	flags.StringSliceVar(&f.tools, "tools", nil, "allowed_tools: the tools; an empty list allows none")
	flags.StringVar(&f.sensitivity, "sensitivity", "", "sensitivity: public, internal, confidential or restricted")
	flags.StringVar(&f.changeWindow, "change-window", "", "policy_context.change_window: when the task may start, as START/END")
	flags.StringVar(&f.environment, "environment", "", "policy_context.environment: where the task takes effect")
	flags.StringVar(&f.after, "after", "", "`ID` of a task that has to end ok before this one starts")
	flags.StringVar(&f.ifFailed, "if-failed", "", "with --after: reject (the default) or run this one if that one fails")
	flags.IntVar(&f.priority, "priority", 0, "from -9 to 9: the highest starts first; limits.priority is the limit")
	flags.StringArrayVar(&f.labels, "label", nil, "label of the task, as `KEY=VALUE`; may be repeated")
}

// members are the members of the envelope for the given flags.
func (f *termFlags) members(cmd *cobra.Command, now time.Time) (map[string]any, error) {
	given := cmd.Flags().Changed
	all, budget, context := map[string]any{}, map[string]any{}, map[string]any{}
	put := func(to map[string]any, flag, name string, value any) {
		if given(flag) {
			to[name] = value
		}
	}
	put(all, "approval", "approval_required", f.approval)
	put(all, "approver", "human_approver", f.approver)
	put(all, "deadline", "deadline", formatTime(f.deadline, now))
	put(all, "tools", "allowed_tools", f.tools)
	put(all, "sensitivity", "sensitivity", f.sensitivity)
	put(budget, "tokens", "tokens", f.tokens)
	put(budget, "usd-cents", "usd_cents", f.cents)
	put(context, "change-window", "change_window", f.changeWindow)
	put(context, "environment", "environment", f.environment)
	if len(budget) > 0 {
		all["budget_limit"] = budget
	}
	if f.environment != "" {
		context["environment"] = f.environment
	}
	if len(context) > 0 {
		all["policy_context"] = context
	}
	metadata := map[string]any{}
	put(metadata, "priority", envelope.PriorityKey, f.priority)
	labels, err := parseLabels(f.labels)
	if len(labels) > 0 {
		metadata[envelope.LabelsKey] = labels
	}
	if f.workdir != "" {
		metadata[envelope.WorkdirKey] = f.workdir
	}
	if f.after != "" {
		after := map[string]any{"task_id": f.after}
		put(after, "if-failed", "if_failed", f.ifFailed)
		metadata[envelope.AfterKey] = after
	} else if given("if-failed") {
		return nil, exit.With(exit.Usage, "--if-failed needs --after")
	}
	if f.worktree {
		metadata[envelope.WorktreeKey] = true
	}
	if f.edit {
		metadata[envelope.EditKey] = true
	}
	if f.base != "" {
		metadata[envelope.BaseKey] = f.base
	}
	if f.continues != "" {
		metadata[envelope.ContinueKey] = f.continues
	}
	if len(metadata) > 0 {
		all["metadata"] = metadata
	}
	return all, err
}

// parseLabels returns the labels of flags, nil for none.
func parseLabels(flags []string) (map[string]string, error) {
	var labels map[string]string
	for _, flag := range flags {
		key, value, err := envelope.ParseLabel(flag)
		if err != nil {
			return nil, exit.With(exit.Usage, "--label %q: %w", flag, err)
		}
		if labels == nil {
			labels = map[string]string{}
		}
		labels[key] = value
	}
	return labels, nil
}

// formatTime returns a time as given, or converts a duration from now.
func formatTime(text string, now time.Time) string {
	if d, err := time.ParseDuration(text); err == nil {
		return now.Add(d).UTC().Format(time.RFC3339Nano)
	}
	return text
}
