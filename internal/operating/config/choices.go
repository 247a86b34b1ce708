package config

import (
	"slices"
	"strings"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/agent"
	"mailboxd/internal/sandboxing/sandbox"
)

// choicesOf returns the values that a key can have; nil for any.
func choicesOf(key string) []string {
	key = index.ReplaceAllString(key, "[]")
	if control, ok := strings.CutPrefix(key, "policy."); ok && slices.Contains(scalarControls(), envelope.Control(control)) {
		return []string{"enforce", "warn", "off"}
	}
	return choices[key]
}

// choices are the keys that have one of a few values, besides the modes of policy. Package
// agent checks those of exec, the profile, the dialect and resend.
var choices = map[string][]string{
	"approval.self":                {"refuse", "confirm", "allow"},
	"approval.program":             {"", string(agent.ByContent), string(agent.ByPath)},
	"web.approve":                  {"terminal", "off"},
	"log.level":                    {"debug", "info", "warn", "error"},
	"log.format":                   {"auto", "console", "json"},
	"intake.first_start":           {"process", "from_end"},
	"conversation.unknown_senders": {"accept", "refuse"},
	"routing.ainl":                 {"on", "off"},
	"routing.sandbox":              {"kernel", "card"},
	"routing.network":              networks(),
	"policy.change_window.mode":    {"enforce", "warn", "off"},
	"policy.budgets[].per":         {"day"},
	"policy.proof[].min":           {"terminal", "ssh", "person"},
	"signatures[].mode":            {"require", "verify"},
	"signatures[].types[]":         dialect.ClutchTypes(),
	"approvers[].proof":            {"", "none", "terminal", "ssh", "person"},
	"agents[].dialect":             {"ainl", "clowl", "cap", "clutch"},
	"agents[].profile":             append([]string{""}, agent.Profiles()...),
	"agents[].permission":          append([]string{""}, agent.Permissions()...),
	"agents[].exec.output":         agent.Formats(),
	"agents[].exec.stdin":          {string(agent.Request), string(agent.Prompt), string(agent.Dispatch), string(agent.Action), string(agent.None)},
	"agents[].sandbox.profile":     sandbox.Profiles(),
	"agents[].sandbox.missing":     {string(sandbox.Refuse), string(sandbox.Weaker), string(sandbox.Open)},
	"agents[].http.mode":           task.ServiceModes(),
	"agents[].acp.rules[].kind":    callKinds(),
	"agents[].acp.rules[].do":      {string(task.AllowCall), string(task.RejectCall), string(task.AskPerson)},
	"agents[].acp.otherwise":       {string(task.RejectCall), string(task.AskPerson)},
	"agents[].resend":              {string(agent.Rerun), string(agent.Refuse)},
	"agents[].max_sensitivity":     {"public", "internal", "confidential", "restricted"},
	"agents[].refs":                {"optional", "required"},
	"agents[].on_error[].do":       {"retry", "reassign", "escalate"},

	"workflows[].steps[].expects.type": {"", "task.result"},
}

// choice refuses another value than the choices of a key.
func choice(key, value string) error { return oneOf(key, value, choicesOf(key)...) }

func oneOf(key, value string, allowed ...string) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	named := slices.DeleteFunc(slices.Clone(allowed), func(word string) bool { return word == "" })
	return wrong(key, "%q is not one of %s", value, strings.Join(named, ", "))
}
