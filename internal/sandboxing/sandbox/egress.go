package sandbox

import (
	"net/netip"
	"slices"
	"strings"

	"mailboxd/envelope"
)

// Egress lists the hosts that may see what is of a sensitivity.
type Egress struct {
	Public       Hosts `json:"public,omitempty"`
	Internal     Hosts `json:"internal,omitempty"`
	Confidential Hosts `json:"confidential,omitempty"`
	Restricted   Hosts `json:"restricted,omitempty"`
}

// Of returns the hosts that may see a sensitivity.
func (e Egress) Of(s envelope.Sensitivity) Hosts {
	switch s {
	case envelope.Public:
		return e.Public
	case envelope.Internal:
		return e.Internal
	case envelope.Confidential:
		return e.Confidential
	}
	return e.Restricted
}

// Contains reports whether a sandbox lets what is of a sensitivity reach only hosts that may
// see it, also during a setup. A sandbox without a network does.
func (s Settings) Contains(class envelope.Sensitivity) bool {
	allowed := s.Egress.Of(class)
	reachable := slices.Concat(s.Network, s.SetupNetwork)
	return s.Active() && !slices.ContainsFunc(reachable, func(entry string) bool { return !allowed.covers(entry) })
}

// covers reports whether a list allows all that an entry of another list allows.
func (h Hosts) covers(entry string) bool {
	name, port := splitHost(entry)
	below, wild := strings.CutPrefix(plainName(name), "*.")
	if !wild {
		return h.Allow(name, port) || h.allowAddress(name, port)
	}
	for _, own := range h {
		allowed, on := splitHost(own)
		base, wide := strings.CutPrefix(plainName(allowed), "*.")
		if wide && on == port && (below == base || strings.HasSuffix(below, "."+base)) {
			return true
		}
	}
	return false
}

// allowAddress compares addresses by their value: one has several spellings.
func (h Hosts) allowAddress(name, port string) bool {
	addr, err := netip.ParseAddr(name)
	return err == nil && slices.ContainsFunc(h, func(own string) bool {
		allowed, on := splitHost(own)
		other, err := netip.ParseAddr(allowed)
		return err == nil && other == addr && on == port
	})
}
