// Package runnerssh keeps runners that are reached with ssh: it starts mailboxd-hub on the loopback interface,
// and for each runner an ssh that lets the other machine reach the hub and runs mailboxd runner there.
//
// ssh carries and authenticates. The runner gets its credentials on standard input, so that no file is copied.
// Other users of its machine can connect to the forwarded port, and can do nothing there: the hub wants
// the runner's key, and the runner wants the hub's certificate.
package runnerssh

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"
)

// Pauses between two attempts.
const (
	firstPause   = time.Second
	longestPause = 10 * time.Second // so that a machine is connected soon after the network is back
	steady       = 20 * time.Second // a connection that lasted so long was a good one
)

// A Runner is one that is reached with ssh.
type Runner struct {
	Name        string
	Destination string // of ssh: a host of ~/.ssh/config, or user@host
}

// destination is what ssh may be told to connect to. It never begins with "-", and has nothing for a shell.
var destination = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.@:%+-]{0,254}$`)

// CheckDestination refuses what is no destination of ssh.
func CheckDestination(s string) error {
	if !destination.MatchString(s) {
		return fmt.Errorf("%q is no host of ~/.ssh/config and no user@host", s)
	}
	return nil
}

// A Failure says why a runner isn't connected, and what to do about it.
type Failure struct {
	Reason string
	Next   string
}

// Options are what links need.
type Options struct {
	Runners []Runner
	Dir     string // of the hub, which is made if it isn't there
	Log     zerolog.Logger
	Changed func() // is called when the failure of a runner changed; nil for nothing

	hub, ssh string           // programs; "" to look for them
	port     func() int       // of the other machine, for tests
	pause    [2]time.Duration // the first and the longest one, for tests
}

// Links are the hub on the loopback interface and an ssh for each runner.
type Links struct {
	opts    Options
	program string // mailboxd-hub
	hub     *hub

	mu       sync.Mutex // guards failures
	failures map[string]Failure
}

// Start makes the hub if it isn't there, gives each runner a key, and starts the hub. Serve keeps it running.
func Start(ctx context.Context, o Options) (*Links, error) {
	program, err := findHub(o.hub)
	if err != nil {
		return nil, err
	}
	o.ssh = cmp.Or(o.ssh, "ssh")
	if _, err := exec.LookPath(o.ssh); err != nil {
		return nil, fmt.Errorf("reach runners with ssh: %w; install the client of OpenSSH", err)
	}
	if o.pause == [2]time.Duration{} {
		o.pause = [2]time.Duration{firstPause, longestPause}
	}
	if o.port == nil {
		o.port = randomPort
	}
	l := &Links{opts: o, program: program, failures: map[string]Failure{}}
	if err := l.makeHub(ctx); err != nil {
		return nil, err
	}
	l.hub = &hub{program: program, dir: o.Dir, log: o.Log}
	if err := l.hub.start(ctx, "127.0.0.1:0"); err != nil {
		return nil, err
	}
	return l, nil
}

// findHub looks for mailboxd-hub beside this program, and on PATH.
func findHub(program string) (string, error) {
	if program != "" {
		return program, nil
	}
	if self, err := os.Executable(); err == nil {
		beside := filepath.Join(filepath.Dir(self), "mailboxd-hub")
		if _, err := exec.LookPath(beside); err == nil {
			return beside, nil
		}
	}
	path, err := exec.LookPath("mailboxd-hub")
	if err != nil {
		return "", errors.New("find mailboxd-hub, which runners over ssh need: it is neither beside mailboxd nor on PATH; " +
			"install it from the same release, or run: go install ./cmd/mailboxd-hub")
	}
	return path, nil
}

// makeHub makes the directory of the hub, and gives each configured runner a key; another one if its
// file is gone. A runner that is no longer configured loses its key.
func (l *Links) makeHub(ctx context.Context) error {
	if _, err := os.Stat(filepath.Join(l.opts.Dir, "hub.json")); err != nil {
		if err := l.command(ctx, "init", "--listen", "127.0.0.1:0", "--host", "127.0.0.1", "--tls"); err != nil {
			return err
		}
	}
	enrolled, err := os.ReadDir(filepath.Join(l.opts.Dir, "runners"))
	if err != nil {
		return fmt.Errorf("read the runners of the hub: %w", err)
	}
	known := map[string]bool{}
	for _, e := range enrolled {
		name := e.Name()
		if strings.HasPrefix(name, ".") {
			continue
		}
		_, missing := os.Stat(l.credentialsOf(name))
		known[name] = missing == nil && slices.ContainsFunc(l.opts.Runners, func(r Runner) bool { return r.Name == name })
		if !known[name] {
			if err := l.command(ctx, "remove", name); err != nil {
				return err
			}
		}
	}
	for _, r := range l.opts.Runners {
		if !known[r.Name] {
			if err := l.command(ctx, "enroll", r.Name); err != nil {
				return err
			}
		}
	}
	return nil
}

// command runs a command of mailboxd-hub.
func (l *Links) command(ctx context.Context, args ...string) error {
	out, err := exec.CommandContext(ctx, l.program, append([]string{"--dir", l.opts.Dir}, args...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %s", l.program, args[0], cmp.Or(lastLine(string(out)), err.Error()))
	}
	return nil
}

// credentialsOf is the file with the key of a runner.
func (l *Links) credentialsOf(name string) string {
	return filepath.Join(l.opts.Dir, "credentials", name+".nk")
}

// Credentials is the file with which the owner logs in at the hub.
func (l *Links) Credentials() string { return filepath.Join(l.opts.Dir, "hub.nk") }

// URL is where the owner reaches the hub.
func (l *Links) URL() string { return l.hub.url }

// Failures returns why runners are not connected.
func (l *Links) Failures() map[string]Failure {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := map[string]Failure{}
	for name, f := range l.failures {
		all[name] = f
	}
	return all
}

// Close ends the hub of links that Serve never kept.
func (l *Links) Close() error { return l.hub.close() }

// Serve keeps the hub and the connections until the context ends.
func (l *Links) Serve(ctx context.Context) error {
	work, ctx := errgroup.WithContext(ctx)
	work.Go(func() error { return l.hub.serve(ctx, l.opts.pause) })
	for _, r := range l.opts.Runners {
		work.Go(func() error { return l.keep(ctx, r) })
	}
	return work.Wait()
}

// keep connects a runner again and again.
func (l *Links) keep(ctx context.Context, r Runner) error {
	pause := l.opts.pause[0]
	for ctx.Err() == nil {
		began := time.Now()
		err := l.connect(ctx, r)
		if ctx.Err() != nil {
			return nil
		}
		if time.Since(began) > steady {
			pause = l.opts.pause[0]
		}
		if f := explain(r, err); l.set(r.Name, f) {
			l.opts.Log.Warn().Str("runner", r.Name).Str("reason", f.Reason).Str("next", f.Next).Msg("runner not connected; trying again")
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		pause = min(2*pause, l.opts.pause[1])
	}
	return nil
}

// set keeps why a runner isn't connected, and reports whether that is new.
func (l *Links) set(name string, f Failure) bool {
	l.mu.Lock()
	was := l.failures[name]
	if f == (Failure{}) {
		delete(l.failures, name)
	} else {
		l.failures[name] = f
	}
	l.mu.Unlock()
	if was != f && l.opts.Changed != nil {
		l.opts.Changed()
	}
	return was != f
}
