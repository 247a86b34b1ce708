package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
)

// reachSockets is an agent that connects to every socket of mailboxd that it can find: by
// path, through the root and the working directory of each process, and by abstract names.
func reachSockets() {
	reached := map[string]bool{}
	roots, _ := filepath.Glob("/proc/[0-9]*/root")
	for _, root := range append([]string{""}, roots...) {
		for what, pattern := range map[string]string{
			"control": filepath.Join(os.Getenv("XDG_RUNTIME_DIR"), "mailboxd", "*.sock"),
			"keeper":  filepath.Join(os.Getenv("XDG_STATE_HOME"), "mailboxd", "*", "keepers", "*.sock"),
		} {
			sockets, _ := filepath.Glob(root + pattern)
			for _, socket := range sockets {
				dir, name := filepath.Split(socket)
				if os.Chdir(dir) == nil && canDial(name) { // the whole path may be too long for an address
					reached[what] = true
				}
			}
		}
	}
	text, _ := os.ReadFile("/proc/net/unix")
	for line := range strings.Lines(string(text)) {
		if at := strings.IndexByte(line, '@'); at >= 0 && strings.Contains(line, "mailboxd") && canDial(strings.TrimSpace(line[at:])) {
			reached["abstract"] = true
		}
	}
	var names []string
	for _, what := range []string{"control", "keeper", "abstract"} {
		if reached[what] {
			names = append(names, what)
		}
	}
	if names == nil {
		names = []string{"nothing"}
	}
	answer(fmt.Sprint("reached ", strings.Join(names, ", ")))
}

func canDial(name string) bool {
	conn, err := net.Dial("unix", name)
	if err != nil {
		return false
	}
	conn.Close()
	return true
}
