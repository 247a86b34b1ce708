package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/nats-io/nats.go"

	"mailboxd/internal/running/carrier"
)

// A hub is a mailboxd-hub that serves, with the defaults of its users: each write to its disk is synced.
type hub struct {
	dir string
	url string
	cmd *exec.Cmd
}

// startHub makes a hub with runners, and starts it.
func (l *lab) startHub(ctx context.Context, dir string, runners []string) (*hub, error) {
	if err := l.tools.buildHub(ctx); err != nil {
		return nil, err
	}
	h := &hub{dir: dir}
	err := run(ctx, l.tools.hub, "init", "--dir", dir, "--listen", "127.0.0.1:0", "--enroll", strings.Join(runners, ","))
	if err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	h.cmd = exec.CommandContext(ctx, l.tools.hub, "serve", "--dir", dir, "--listen", "127.0.0.1:0")
	h.cmd.Stderr = log
	h.url, err = startServer(h.cmd)
	return h, err
}

func (h *hub) stop() { endServer(h.cmd) }

// ownerFile and runnerFile are the files of the credentials.
func (h *hub) ownerFile() string             { return filepath.Join(h.dir, "hub.nk") }
func (h *hub) runnerFile(name string) string { return filepath.Join(h.dir, "credentials", name+".nk") }

// connection are the options of a connection with a file of credentials.
func (h *hub) connection(file string) (carrier.Options, error) {
	credentials, err := carrier.ReadCredentials(file)
	return carrier.Options{URL: h.url, Credentials: credentials}, err
}

// messages counts the messages that runners send while do works.
func (h *hub) messages(do func() error) (sent int, err error) {
	o, err := h.connection(h.ownerFile())
	if err != nil {
		return 0, err
	}
	login, err := o.Credentials.Options()
	if err != nil {
		return 0, err
	}
	c, err := nats.Connect(h.url, login...)
	if err != nil {
		return 0, fmt.Errorf("count messages: %w", err)
	}
	defer c.Close()
	all, err := c.SubscribeSync(fmt.Sprintf("mbx.%s.>", o.Credentials.Root))
	if err == nil {
		err = c.Flush()
	}
	if err == nil {
		err = do()
	}
	if err == nil {
		err = c.Flush()
	}
	for err == nil {
		var m *nats.Msg
		if m, err = all.NextMsg(0); err == nil && !strings.Contains(m.Subject, ".to.") { // those are the owner's
			sent++
		}
	}
	if err == nats.ErrTimeout {
		err = nil // there are no more
	}
	return sent, err
}
