package view

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/term"
)

// PrintReplay prints the messages of a run: as they are, or a line of words for each.
func PrintReplay(w io.Writer, r client.Replay, asJSON bool) error {
	for _, m := range r.Messages {
		line := string(m.Envelope)
		if !asJSON {
			line = describeEnvelope(m)
		}
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}

// describeEnvelope describes a message of Clutch on one line.
func describeEnvelope(m client.StoreMessage) string {
	type party struct {
		Agent string `json:"agent_id"`
	}
	var e struct {
		Time    string         `json:"ts"`
		Task    string         `json:"task_id"`
		From    party          `json:"from"`
		To      []party        `json:"to"`
		Type    string         `json:"type"`
		Payload jsontext.Value `json:"payload"`
	}
	if json.Unmarshal(m.Envelope, &e, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) != nil {
		return fmt.Sprintf("%6d  not an envelope", m.Seq)
	}
	to := make([]string, len(e.To))
	for i, p := range e.To {
		to[i] = strings.TrimPrefix(p.Agent, "agent:")
	}
	at := e.Time
	if t, err := time.Parse(time.RFC3339, e.Time); err == nil {
		at = t.Local().Format(time.DateTime)
	}
	from := strings.TrimPrefix(e.From.Agent, "agent:") + " > " + cmp.Or(strings.Join(to, ", "), "the router")
	return strings.TrimRight(fmt.Sprintf("%6d  %s  %-16s  %s  %s  %s", m.Seq, term.OneLine(at), term.OneLine(e.Type), term.OneLine(e.Task),
		term.OneLine(from), quotedPayload(e.Payload)), " ")
}

// quotedPayload quotes what a payload says to people.
func quotedPayload(payload jsontext.Value) string {
	var p struct {
		Title, Message, Summary, Text, Content, Reason string
	}
	if json.Unmarshal(payload, &p, json.MatchCaseInsensitiveNames(true), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) != nil {
		return ""
	}
	if words := cmp.Or(p.Summary, p.Message, p.Text, p.Content, p.Title, p.Reason); words != "" {
		return quoted(words)
	}
	return ""
}
