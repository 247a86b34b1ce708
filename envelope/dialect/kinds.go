package dialect

import (
	"slices"
	"strconv"

	"mailboxd/envelope"
)

// KindsOf returns the kinds of error that a code means: a code of CLowl ("E006"), of CAP
// ("504"), of Clutch ("TIMEOUT"), or a kind by its own name. It returns none for another word.
func KindsOf(code string) []envelope.Kind {
	if known(envelope.Kind(code)) {
		return []envelope.Kind{envelope.Kind(code)}
	}
	var kinds []envelope.Kind
	for _, row := range table {
		if row.clowl == code || strconv.Itoa(row.cap) == code || row.clutch == code {
			kinds = slices.Concat(kinds, row.kinds)
		}
	}
	return kinds
}
