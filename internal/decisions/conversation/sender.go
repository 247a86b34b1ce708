package conversation

import (
	"crypto/sha256"
	"crypto/subtle"
	"slices"

	"mailboxd/envelope"
)

// reserved are names that a sender of a line can't have.
var reserved = []string{envelope.Mailboxd, envelope.Everybody, "router", "registry", envelope.MCP}

// systemTypes are the types of Clutch's messages that only the daemon sends (CLUTCH-32, CLUTCH-36).
var systemTypes = []string{"chat.system", "routing.decision", "routing.failure"}

// people are participants that aren't agents (CAP-17).
var people = []string{"user", "orchestrator"}

// IsPerson reports whether a name is a participant that needs no configuration.
func IsPerson(name string) bool { return slices.Contains(people, name) }

// Distrust says why the stated sender of a line can't be trusted; "" if it can (CLOWL-18).
// Secret is the sender's configured secret, or "".
func Distrust(m envelope.Message, secret string) string {
	switch {
	case slices.Contains(reserved, m.From), m.Clutch != nil && m.From == "orchestrator": // in CAP it is a person (CLUTCH-91)
		return "is a reserved name"
	case m.Clutch != nil && slices.Contains(systemTypes, m.Clutch.Type):
		return "must not say " + m.Clutch.Type + ", which is mailboxd's alone"
	case secret == "" || equalSecrets(secret, m.Secret):
		return ""
	case m.Secret == "":
		return "has a secret here, which is missing"
	}
	return "has another secret here"
}

// equalSecrets compares two secrets in constant time.
func equalSecrets(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// Capabilities returns the announcements of what the daemon and each agent support
// (CLOWL-29), with CLowl data. They have no ID and no Time.
func Capabilities(agents []string, supports func(agent string) []string) []envelope.Message {
	var all []string
	for _, name := range agents {
		all = append(all, supports(name)...)
	}
	slices.Sort(all)
	messages := []envelope.Message{capability(envelope.Mailboxd, slices.Compact(all))}
	for _, name := range agents {
		messages = append(messages, capability(name, supports(name)))
	}
	return messages
}

func capability(name string, supports []string) envelope.Message {
	supports = slices.Concat([]string{}, supports) // never null
	return envelope.Message{
		Act: envelope.Announces, From: name, To: []string{envelope.Everybody}, Type: "capabilities",
		Data: encode(map[string]any{"supports": supports, "clowl": "0.2"}), Supports: supports,
	}
}
