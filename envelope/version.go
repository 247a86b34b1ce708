package envelope

import "strings"

// version checks schema_version (AINL-30). An AINL program writes "1.0" as a number when it
// builds an envelope (F2).
func (c *check) version(at int) {
	text, quoted := string(c.value(at)), c.kind(at) == '"'
	if quoted {
		text, _ = c.text(at)
	}
	major, minor, dotted := strings.Cut(text, ".")
	switch {
	case !quoted && (text == "1" || text == "1.0"):
		c.tolerate(at, `should be the string "1.0"`)
	case !numeral(major), dotted && !numeral(minor), quoted && !dotted:
		c.refuse(at, `must be a string such as "1.0"`)
	case major != "1":
		c.note(UnsupportedVersion, c.path(at), "is "+quote(text)+", only 1.x is supported")
	case !quoted:
		c.refuse(at, `must be a string such as "1.0"`)
	case minor != "0":
		c.warn(at, "is "+quote(text)+", newer than 1.0: what it adds is kept but not understood")
	}
}

// numeral reports whether s is a whole number without leading zeros.
func numeral(s string) bool {
	return s != "" && (s == "0" || s[0] != '0') && strings.Trim(s, "0123456789") == ""
}
