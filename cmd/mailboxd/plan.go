package main

import (
	"crypto/sha256"
	"encoding/hex"
	"os/exec"
	"path/filepath"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
	"mailboxd/internal/agent"
	"mailboxd/internal/ledger"
)

// A plan is what a person agrees to before a run: this request, to be done by
// this command with these limits. What changes from one attempt to the next is
// not part of it.
type plan struct {
	Request    string          `json:"request"`    // the envelope's hash
	Command    []string        `json:"command"`    // as it is configured, its templates not filled in
	Executable string          `json:"executable"` // the file that the first word of it is now; "" when there is none
	Cwd        string          `json:"cwd"`        // "" for a directory of the run's own
	Tools      []string        `json:"tools"`      // null: nobody said
	Budget     envelope.Budget `json:"budget"`
}

func newPlan(t envelope.Task, b agent.Binding, terms ledger.Terms) plan {
	p := plan{Request: t.Hash, Command: b.Command, Cwd: b.Cwd, Tools: terms.Tools, Budget: terms.Budget}
	if b.Worker != nil {
		p.Command = b.Worker.Command
	}
	if len(p.Command) > 0 {
		p.Executable = executable(p.Command[0])
	}
	return p
}

// executable returns the file that a command means, links resolved.
func executable(command string) string {
	path, err := exec.LookPath(command)
	if err != nil {
		return ""
	}
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		return resolved
	}
	return path
}

// encode never fails: a plan is text and numbers, and a path may be any bytes.
func (p plan) encode() jsontext.Value {
	text, err := json.Marshal(p, json.FormatNilSliceAsNull(true), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		panic("encode plan: " + err.Error())
	}
	return text
}

// digest names a plan, so that two are the same when their names are.
func digest(p jsontext.Value) string {
	sum := sha256.Sum256(p)
	return hex.EncodeToString(sum[:])
}
