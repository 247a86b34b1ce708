package sandbox

import "strings"

// An UnneededHost is a host that a known program asks for, and that it doesn't need for its answer.
// A gate that refuses it says so.
type UnneededHost struct {
	Host string // an entry as in a network list
	For  string // what the program uses it for: "usage statistics"
}

// Argument returns the host as an argument of a gate.
func (u UnneededHost) Argument() string { return u.Host + "=" + u.For }

// UnneededHosts are those of one program.
type UnneededHosts []UnneededHost

// For returns what the program uses a host for; "" for a host that isn't one of these.
func (all UnneededHosts) For(name, port string) string {
	for _, u := range all {
		if (Hosts{u.Host}).Allow(name, port) {
			return u.For
		}
	}
	return ""
}

// UnneededSeparator is the argument of a gate between the hosts of its list and the unneeded ones.
const UnneededSeparator = "--"

// GateHosts reads the arguments of a gate.
func GateHosts(args []string) (listed Hosts, unneeded UnneededHosts) {
	for i, arg := range args {
		if arg != UnneededSeparator {
			listed = append(listed, arg)
			continue
		}
		for _, rest := range args[i+1:] {
			host, use, _ := strings.Cut(rest, "=")
			unneeded = append(unneeded, UnneededHost{host, use})
		}
		break
	}
	return listed, unneeded
}

// GateArguments are the arguments of a gate.
func GateArguments(listed Hosts, unneeded UnneededHosts) []string {
	args := append([]string{}, listed...)
	if len(unneeded) > 0 {
		args = append(args, UnneededSeparator)
	}
	for _, u := range unneeded {
		args = append(args, u.Argument())
	}
	return args
}
