package main

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"time"

	"mailboxd/mailbox"
)

// socket asks on the control socket whether a daemon is there.
func (d *doctor) socket(ctx context.Context) {
	slug, err := mailbox.Slug(d.root)
	if err != nil {
		d.bad("socket", "ls -ld "+d.root, "%v", err)
		return
	}
	ctx, stop := context.WithTimeout(ctx, time.Second)
	defer stop()
	places := socketPaths(d.state, slug)
	for _, path := range places {
		conn, err := new(net.Dialer).DialContext(ctx, "unix", path)
		if err == nil {
			conn.Close()
			d.good("socket", "%s answers", path)
			return
		}
	}
	if d.pid == 0 {
		d.good("socket", "%s, when a daemon runs", places[0])
		return
	}
	d.warn("socket", "ls -l "+filepath.Dir(places[0]), "%s does not answer, although process %d serves", places[0], d.pid)
}

// socketPaths are where the control socket may be, the best first.
func socketPaths(state, slug string) []string {
	paths := []string{filepath.Join(state, slug+".sock")}
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		paths = append([]string{filepath.Join(dir, "mailboxd", slug+".sock")}, paths...)
	}
	return paths
}
