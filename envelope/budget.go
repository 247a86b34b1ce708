package envelope

// A Budget limits the spending of a task over all its attempts. A limit that was not given is
// nil; zero forbids all spending (AINL-46).
type Budget struct {
	Tokens   *int64 `json:"tokens,omitzero"`
	USDCents *int64 `json:"usd_cents,omitzero"`
}

// Least returns the smaller limit of each kind. A limit that was not given is the largest.
func (b Budget) Least(other Budget) Budget {
	return Budget{Tokens: least(b.Tokens, other.Tokens), USDCents: least(b.USDCents, other.USDCents)}
}

func least(a, b *int64) *int64 {
	if a == nil || b != nil && *b < *a {
		return b
	}
	return a
}
