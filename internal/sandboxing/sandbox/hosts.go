package sandbox

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// Hosts are the entries of a network list: "api.example.com", "*.example.com:8443",
// "192.168.1.7:8080". Without a port, an entry means 443. "*." means every name below, and not
// the name itself.
type Hosts []string

// CheckHost says what is wrong with an entry of a network list, or nil.
func CheckHost(entry string) error {
	name, port := splitHost(entry)
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
		return fmt.Errorf("%q: write a host, or a host and a port, such as api.example.com:443", entry)
	}
	if _, err := netip.ParseAddr(name); err == nil {
		return nil
	}
	name = strings.TrimPrefix(name, "*.")
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '.' || r == '_'
	}
	if name == "" || strings.ContainsFunc(name, func(r rune) bool { return !plain(r) }) {
		return fmt.Errorf("%q: is no host name; write api.example.com, or *.example.com for the names below", entry)
	}
	return nil
}

// Allow reports whether a host and a port are in the list. An address is only if it is
// written out.
func (h Hosts) Allow(name, port string) bool {
	name = plainName(name)
	for _, entry := range h {
		allowed, on := splitHost(entry)
		allowed = plainName(allowed)
		below, wild := strings.CutPrefix(allowed, "*")
		if on == port && (name == allowed || wild && strings.HasSuffix(name, below) && !isAddress(name)) {
			return true
		}
	}
	return false
}

func isAddress(name string) bool {
	_, err := netip.ParseAddr(name)
	return err == nil
}

// plainName returns a name as it is compared: case and a final dot don't count.
func plainName(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }

func splitHost(entry string) (name, port string) {
	if name, port, err := net.SplitHostPort(entry); err == nil {
		return name, port
	}
	return strings.Trim(entry, "[]"), "443"
}

// special are networks that no name of a public host leads to, besides those that netip knows.
var special = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("64:ff9b:1::/48"), netip.MustParsePrefix("2002::/16"),
	netip.MustParsePrefix("fec0::/10"),
}

// Public reports whether an address is one of the public network. Names that lead to other
// addresses would reach this machine, its network or the metadata of a cloud.
func Public(addr netip.Addr) bool {
	addr = addr.Unmap()
	if !addr.IsGlobalUnicast() || addr.IsPrivate() {
		return false
	}
	for _, network := range special {
		if network.Contains(addr) {
			return false
		}
	}
	return true
}
