package agent

import (
	"math/big"
	"regexp"

	"github.com/go-json-experiment/json/jsontext"
)

// decimal is an amount that is small enough to be worked out exactly.
var decimal = regexp.MustCompile(`^[0-9]{1,12}(\.[0-9]{1,40})?([eE][-+]?[0-9]{1,2})?$`)

// cents turns US dollars, as a JSON number says them, into whole cents: exact,
// and what is left over counts as one more. It is nil for what is no amount.
func cents(dollars jsontext.Value) *int64 {
	if !decimal.Match(dollars) {
		return nil
	}
	amount, ok := new(big.Rat).SetString(string(dollars))
	if !ok {
		return nil
	}
	amount.Mul(amount, big.NewRat(100, 1))
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
