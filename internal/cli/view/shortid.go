package view

import (
	"math/bits"
	"strings"

	"mailboxd/envelope"
)

// LeastShort is the least length of a short id, and of the beginning of an id in a command
// that changes a task.
const LeastShort = 4

// ShortID returns the first characters of a random id that are not those of its neighbours,
// the ids before and after it in byte order, "" for none. Of many tasks it returns more, as
// git does: it should stay unique when as many come again. Other ids are names that a person
// or a program chose, and stay whole.
func ShortID(id, before, after envelope.ID, tasks int64) envelope.ID {
	if !IsRandom(id) {
		return id
	}
	n := max(LeastShort, (bits.Len64(uint64(tasks))+1)/2, common(id, before)+1, common(id, after)+1)
	if n < len(id) && id[n-1] == '-' {
		n++
	}
	return id[:min(n, len(id))]
}

// common returns how many first bytes two ids have in common.
func common(a, b envelope.ID) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

// leastRandom is how many hexadecimal digits look like a random id.
const leastRandom = 16

// IsRandom reports whether an id is a UUID or a long hexadecimal number.
func IsRandom(id envelope.ID) bool {
	return IsUUID(id) || len(id) >= leastRandom && strings.Trim(string(id), hexDigits) == ""
}

const hexDigits = "0123456789abcdefABCDEF"

// IsUUID reports whether an id is a UUID in its usual form.
func IsUUID(id envelope.ID) bool {
	groups := strings.Split(string(id), "-")
	if len(groups) != 5 {
		return false
	}
	for i, n := range [...]int{8, 4, 4, 4, 12} {
		if len(groups[i]) != n || strings.Trim(groups[i], hexDigits) != "" {
			return false
		}
	}
	return true
}
