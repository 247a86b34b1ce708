package runnerdaemon

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/go-json-experiment/json"
	jsonv1 "github.com/go-json-experiment/json/v1"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/agent"
)

// digestOf returns the digest of all that runs for an agent: its binding with the values of its variables,
// and the program and scripts as the plan of an approval has them. It is an HMAC with a key that stays here,
// so that it shows nothing of the values.
func digestOf(planner *agent.Planner, b agent.Binding) (string, error) {
	plan := planner.PlanOf(envelope.Task{}, b, task.Terms{}, "")
	text, err := json.Marshal(struct {
		Plan    any
		Binding agent.Binding
	}{plan, b}, json.Deterministic(true), jsonv1.FormatDurationAsNano(true))
	if err != nil {
		return "", fmt.Errorf("digest of agent %q: %w", b.ID, err)
	}
	mac := hmac.New(sha256.New, planner.Key())
	mac.Write(text)
	return hex.EncodeToString(mac.Sum(nil)), nil
}
