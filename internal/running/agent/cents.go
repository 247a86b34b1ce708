package agent

import (
	"math/big"
	"regexp"

	"github.com/go-json-experiment/json/jsontext"
)

// decimal matches amounts that are small enough for exact arithmetic.
var decimal = regexp.MustCompile(`^[0-9]{1,12}(\.[0-9]{1,40})?([eE][-+]?[0-9]{1,2})?$`)

// cents converts US dollars in a JSON number into whole cents, rounded up exactly. It
// returns nil for anything else.
func cents(dollars jsontext.Value) *int64 {
	if !decimal.Match(dollars) {
		return nil
	}
	amount, ok := new(big.Rat).SetString(string(dollars))
	if !ok {
		return nil
	}
	return wholeCents(amount)
}

// wholeCents converts US dollars into whole cents, rounded up exactly; nil if they are too many.
func wholeCents(dollars *big.Rat) *int64 {
	amount := new(big.Rat).Mul(dollars, big.NewRat(100, 1))
	whole, rest := new(big.Int).QuoRem(amount.Num(), amount.Denom(), new(big.Int))
	if rest.Sign() > 0 {
		whole.Add(whole, big.NewInt(1))
	}
	if !whole.IsInt64() {
		return nil
	}
	n := whole.Int64()
	return &n
}
