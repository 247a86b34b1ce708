package schema

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// clutch is where the schemas of payload types are.
const clutch = scheme + "clutch/"

// payloadTypes are the names of payloads in Clutch, as research.summary.v1.
var payloadTypes = regexp.MustCompile(`^([a-z0-9_-]+(?:\.[a-z0-9_-]+)+)\.v([1-9][0-9]*)$`)

// payloadRefs are the refs of their schemas, as schema://clutch/research/summary@1.
var payloadRefs = regexp.MustCompile(`^schema://clutch/([a-z0-9_-]+(?:/[a-z0-9_-]+)+)@([1-9][0-9]*)$`)

// RefOf returns the ref of the schema of a payload type: schema://clutch/research/summary@1 of
// research.summary.v1; "" of a name that has another form.
func RefOf(payloadType string) string {
	parts := payloadTypes.FindStringSubmatch(payloadType)
	if parts == nil {
		return ""
	}
	return clutch + strings.ReplaceAll(parts[1], ".", "/") + "@" + parts[2]
}

// PayloadTypeOf returns the payload type that a schema describes; "" for another schema.
func PayloadTypeOf(ref string) string {
	parts := payloadRefs.FindStringSubmatch(ref)
	if parts == nil {
		return ""
	}
	return strings.ReplaceAll(parts[1], "/", ".") + ".v" + parts[2]
}

// UnknownVersion says that a set has a schema in other versions than a ref names; "" if it has this
// version, or knows none of it (CLUTCH-14).
func (s *Set) UnknownVersion(ref string) string {
	name, version, versioned := strings.Cut(ref, "@")
	if !versioned || s.Has(ref) {
		return ""
	}
	var known []string
	for _, other := range slices.Sorted(maps.Keys(s.texts)) {
		if own, v, _ := strings.Cut(other, "@"); own == name {
			known = append(known, v)
		}
	}
	if len(known) == 0 {
		return ""
	}
	return fmt.Sprintf("names version %.250q of %.250s, which is not known; known: %q", version, name, known)
}
