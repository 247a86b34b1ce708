package config

import (
	"fmt"
	"slices"
	"time"

	"mailboxd/internal/decisions/sign"
)

// A SenderKey is a public key that verifies messages of a sender (CLUTCH-63).
type SenderKey struct {
	Kid       string `mapstructure:"kid"`
	Public    string `mapstructure:"public"` // PEM, or base64 of the key
	NotBefore string `mapstructure:"not_before"`
	NotAfter  string `mapstructure:"not_after"`
}

// A Signature says which messages must be signed.
type Signature struct {
	Sender string   `mapstructure:"sender"`
	Domain string   `mapstructure:"domain"`
	Types  []string `mapstructure:"types"`
	Mode   string   `mapstructure:"mode"` // require or verify
}

// SignatureRules returns the keys of senders, and which messages must be signed.
func (c *Config) SignatureRules() sign.Rules {
	rules := sign.Rules{Keys: map[string][]sign.Key{}}
	for _, s := range c.Senders {
		for _, k := range s.Keys {
			key := sign.Key{ID: k.Kid}
			key.Public, _ = sign.ParsePublic(k.Public) // checkKeys has refused what can't be read
			key.NotBefore, _ = timeOf(k.NotBefore)
			key.NotAfter, _ = timeOf(k.NotAfter)
			rules.Keys[s.Name] = append(rules.Keys[s.Name], key)
		}
	}
	for _, r := range c.Signatures {
		rules.Rules = append(rules.Rules, sign.Rule{Sender: r.Sender, Domain: r.Domain, Types: r.Types, Require: r.Mode == "require"})
	}
	return rules
}

// timeOf reads a time; "" is none.
func timeOf(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	return time.Parse(time.RFC3339, text)
}

// checkKeys refuses keys that can verify nothing.
func (s Sender) checkKeys(sender string) (checks []error) {
	for i, k := range s.Keys {
		key := fmt.Sprintf("%s.keys[%d]", sender, i)
		switch {
		case k.Kid == "":
			checks = append(checks, wrong(key+".kid", "required"))
		case slices.IndexFunc(s.Keys, func(other SenderKey) bool { return other.Kid == k.Kid }) != i:
			checks = append(checks, wrong(key+".kid", "%q is there twice", k.Kid))
		}
		if _, err := sign.ParsePublic(k.Public); err != nil {
			checks = append(checks, wrong(key+".public", "%v", err))
		}
		from, badFrom := timeOf(k.NotBefore)
		until, badUntil := timeOf(k.NotAfter)
		const example = `%q is no time such as "2027-01-31T00:00:00Z"`
		switch {
		case badFrom != nil:
			checks = append(checks, wrong(key+".not_before", example, k.NotBefore))
		case badUntil != nil:
			checks = append(checks, wrong(key+".not_after", example, k.NotAfter))
		case !until.IsZero() && !until.After(from):
			checks = append(checks, wrong(key+".not_after", "must be later than not_before"))
		}
	}
	return checks
}

// checkSignatures refuses rules that no message can keep.
func (c *Config) checkSignatures() (checks []error) {
	for i, r := range c.Signatures {
		key := fmt.Sprintf("signatures[%d]", i)
		hasKeys := slices.ContainsFunc(c.Senders, func(s Sender) bool { return s.Name == r.Sender && len(s.Keys) > 0 })
		switch {
		case (r.Sender == "") == (r.Domain == ""):
			checks = append(checks, wrong(key, "needs sender or domain, one of them"))
		case r.Sender != "" && !hasKeys:
			checks = append(checks, wrong(key+".sender", "%q has no keys in senders", r.Sender))
		}
		checks = append(checks, choice(key+".mode", r.Mode))
		for j, word := range r.Types {
			checks = append(checks, choice(fmt.Sprintf("%s.types[%d]", key, j), word))
		}
	}
	return checks
}
