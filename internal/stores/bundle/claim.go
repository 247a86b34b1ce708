package bundle

import (
	"fmt"

	"mailboxd/internal/decisions/task"
)

// A Status is the outcome of checking a claim.
type Status string

// The outcomes. Only Good says that the claim is true.
const (
	Good      Status = "ok"
	Bad       Status = "bad"
	Unchecked Status = "not checked"
)

// A Claim is one thing that a bundle claims, and whether it is so.
type Claim struct {
	What   string `json:"claim"` // bundle, signature, seals, approval, plan, request, answer, result, artifact, patch or proof
	Status Status `json:"status"`
	Text   string `json:"text"`
	Task   string `json:"task,omitempty"`  // which revision it is about
	Level  string `json:"proof,omitempty"` // of an approval: the level of proof that was verified

	level task.ProofLevel
}

// A Report has all claims of a bundle.
type Report struct {
	Run    string  `json:"run"`
	OK     bool    `json:"ok"` // no claim is bad
	Claims []Claim `json:"claims"`
}

func (r *Report) add(c Claim) {
	r.Claims = append(r.Claims, c)
}

func (r *Report) say(what string, s Status, format string, args ...any) {
	r.add(Claim{What: what, Status: s, Text: fmt.Sprintf(format, args...)})
}

// count returns a number with its noun.
func count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// about returns a claim about a revision of a task.
func about(what string, t Task, s Status, format string, args ...any) Claim {
	return Claim{What: what, Status: s, Task: t.String(), Text: fmt.Sprintf(format, args...)}
}
