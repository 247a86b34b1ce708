package dispatch_test

import (
	"maps"
	"slices"
	"sync/atomic"

	"mailboxd/dispatch/store"
	"mailboxd/envelope"
	"mailboxd/internal/decisions/sign"
)

// An etiquette is how the agents of an engine speak, and with whom they may.
// The zero value is AINL's.
type etiquette struct {
	dialects map[string]envelope.Dialect
	denied   map[string]string   // why an agent may not hand work to another: "a>b"
	supports map[string][]string // what agents take; without: nothing of what is for Everybody
	secrets  map[string]string
	most     int // how many Everybody may be

	signatures atomic.Pointer[sign.Rules] // nil: nothing has to be signed
}

func (e *engine) protocol() store.Protocol {
	if e.spoken.Dialect != nil {
		return e.spoken
	}
	return store.Protocol{
		Dialect: func(agent string) envelope.Dialect {
			if said, ok := e.dialects[agent]; ok {
				return said
			}
			return envelope.AINL
		},
		Overseer:    func(string) string { return "" },
		MayDelegate: func(from, to string) string { return e.denied[from+">"+to] },
		Takers: func(taskType string, announced map[string][]string) (takers []string) {
			all := maps.Clone(announced)
			if all == nil {
				all = map[string][]string{}
			}
			maps.Copy(all, e.supports)
			for _, name := range slices.Sorted(maps.Keys(all)) {
				if slices.Contains(all[name], taskType) {
					takers = append(takers, name)
				}
			}
			return takers
		},
		Supports: func(agent string) []string { return e.supports[agent] },
		Agents:   func() []string { return slices.Sorted(maps.Keys(e.plays)) },
		Secret:   func(sender string) string { return e.secrets[sender] },
		Signatures: func() sign.Rules {
			if rules := e.signatures.Load(); rules != nil {
				return *rules
			}
			return sign.Rules{}
		},
		Sign:      func(line []byte) ([]byte, error) { return sign.Line(line, daemonKey) },
		OnFailure: func(string, envelope.Kind) store.FailureAction { return store.FailureAction{} },
		Rounds:    3,
		Broadcast: max(e.most, 1),
	}
}
