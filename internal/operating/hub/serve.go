package hub

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/rs/zerolog"
	"golang.org/x/sys/unix"

	"mailboxd/internal/running/host"
)

const (
	reloadEvery  = time.Second      // how often a hub looks for runners that were enrolled or removed
	startTimeout = 30 * time.Second // for the streams of a large directory
	maxPayload   = 8 << 20
	lowDisk      = 64 << 20 // bytes, below which a hub warns
)

// Options say how to serve a hub.
type Options struct {
	Dir    string
	Listen string           // in place of the address of init; "" for that
	Ready  func(url string) // is called when clients can connect
	Log    zerolog.Logger
}

// Serve serves a hub until the context ends.
func Serve(ctx context.Context, o Options) error {
	set, err := readSettings(o.Dir)
	if err != nil {
		return err
	}
	set.Listen = cmp.Or(o.Listen, set.Listen)
	if err := checkAddress(o.Dir, set.Listen); err != nil {
		return err
	}
	unlock, err := lock(ctx, o.Dir)
	if err != nil {
		return err
	}
	defer unlock()
	h := &hubServer{dir: o.Dir, set: set, log: o.Log}
	known := h.stamp() // before the runners are read: those that come later differ from it
	opts, err := h.options()
	if err != nil {
		return err
	}
	if err := h.start(opts); err != nil {
		return err
	}
	defer h.stop()
	h.set.Listen = h.server.Addr().String()
	if o.Ready != nil {
		o.Ready(h.url())
	}
	return h.watch(ctx, opts, known)
}

// lockTime is how long a hub waits for one that ends, such as that of a daemon which was killed.
const lockTime = 5 * time.Second

// lock makes this process the only one that serves a directory: two servers would damage its streams.
func lock(ctx context.Context, dir string) (unlock func(), err error) {
	file, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("lock the hub: %w", err)
	}
	ctx, stop := context.WithTimeout(ctx, lockTime)
	defer stop()
	for {
		if err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err == nil {
			return func() { _ = file.Close() }, nil
		}
		select {
		case <-time.After(50 * time.Millisecond):
			continue
		case <-ctx.Done():
		}
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = fmt.Errorf("the hub %s is served already; end the other mailboxd-hub, or set --dir", dir)
		}
		return nil, errors.Join(err, file.Close())
	}
}

// checkAddress refuses an address away from the loopback interface, for a hub without a certificate.
func checkAddress(dir, listen string) error {
	loopback, err := checkListen(listen)
	if err == nil && !loopback && !hasTLS(dir) {
		err = fmt.Errorf("listen at %s: the hub has no certificate, so it serves the loopback interface alone; "+
			"make a hub with mailboxd-hub init --listen %s", listen, listen)
	}
	return err
}

// A hubServer is a hub that serves.
type hubServer struct {
	dir    string
	set    settings
	log    zerolog.Logger
	server *server.Server
	fatal  chan string
}

// options are those of the server.
func (h *hubServer) options() (*server.Options, error) {
	address, port, err := net.SplitHostPort(h.set.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen %q: %w", h.set.Listen, err)
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		return nil, fmt.Errorf("listen %q: the port is no number", h.set.Listen)
	}
	if number == 0 {
		number = server.RANDOM_PORT
	}
	if err := privateFile(filepath.Join(h.dir, ownerFile)); err != nil && !errors.Is(err, os.ErrNotExist) { // it may have moved to the owner
		return nil, err
	}
	tls, err := tlsConfig(h.dir)
	if err != nil {
		return nil, err
	}
	users, err := readUsers(h.dir, h.set, func(words string) { h.log.Warn().Msg(words) })
	if err != nil {
		return nil, err
	}
	return &server.Options{
		ServerName: "mailboxd-hub", Host: address, Port: number, Nkeys: users, TLSConfig: tls, TLS: tls != nil, TLSTimeout: 10,
		JetStream: true, StoreDir: filepath.Join(h.dir, jetstreamDir), SyncAlways: true, SyncInterval: 2 * time.Minute,
		DisableJetStreamBanner: true, NoSigs: true, MaxPayload: maxPayload, MaxPending: 64 << 20,
		PingInterval: 5 * time.Second, MaxPingsOut: 3,
	}, nil
}

// start starts the server, and waits until clients can connect.
func (h *hubServer) start(opts *server.Options) error {
	if err := tryPort(opts); err != nil {
		return err
	}
	if err := tryDisk(opts.StoreDir); err != nil {
		return err
	}
	s, err := server.NewServer(opts.Clone())
	if err != nil {
		return fmt.Errorf("start the hub: %w", err)
	}
	h.server, h.fatal = s, make(chan string, 1)
	s.SetLoggerV2(&logger{log: h.log, fatal: h.fatal}, false, false, false)
	s.Start()
	if !s.ReadyForConnections(startTimeout) || !s.JetStreamEnabled() {
		h.stop()
		select {
		case why := <-h.fatal:
			return fmt.Errorf("start the hub: %s", why)
		default:
			return fmt.Errorf("start the hub: its streams in %s can't be used; its log says why", opts.StoreDir)
		}
	}
	return nil
}

// tryPort says in plain words that a port is taken, which the server reports in its log alone.
func tryPort(opts *server.Options) error {
	if opts.Port == server.RANDOM_PORT {
		return nil
	}
	listen := net.JoinHostPort(opts.Host, strconv.Itoa(opts.Port))
	l, err := net.Listen("tcp", listen)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("listen at %s: another program has this port, perhaps a hub of another directory; end it, or set --listen", listen)
	case err != nil:
		return fmt.Errorf("listen at %s: %w; set --listen", listen, err)
	}
	return l.Close()
}

// tryDisk writes a file where the streams will be.
func tryDisk(dir string) error {
	err := os.MkdirAll(dir, 0o700)
	if err == nil {
		err = writeFile(filepath.Join(dir, ".try"), make([]byte, 64<<10), false)
	}
	if err == nil {
		err = os.Remove(filepath.Join(dir, ".try"))
	}
	if errors.Is(err, syscall.ENOSPC) {
		return fmt.Errorf("start the hub: the disk of %s is full; free some space", dir)
	}
	if err != nil {
		return fmt.Errorf("start the hub: write to %s: %w", dir, err)
	}
	return nil
}

func (h *hubServer) stop() {
	h.server.Shutdown()
	h.server.WaitForShutdown()
}

// url is where the hub is reached.
func (h *hubServer) url() string {
	set := h.set
	if !hasTLS(h.dir) {
		set.Hosts = []string{"127.0.0.1"}
		if host, _, _ := net.SplitHostPort(set.Listen); host != "" {
			set.Hosts[0] = host
		}
	}
	return set.url(h.dir)
}

// watch lets runners in that are enrolled while the hub serves, and ends with the context or the server.
func (h *hubServer) watch(ctx context.Context, opts *server.Options, known string) error {
	full := false
	tick := time.NewTicker(reloadEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case why := <-h.fatal:
			return fmt.Errorf("serve the hub: %s", why)
		case <-tick.C:
			full = h.checkDisk(full)
			if now := h.stamp(); now != known {
				known = now
				h.reload(opts)
			}
		}
	}
}

// checkDisk warns once when the disk is almost full.
func (h *hubServer) checkDisk(was bool) bool {
	disk, err := host.DiskOf(h.dir)
	low := err == nil && disk.Bytes < lowDisk
	if low && !was {
		h.log.Warn().Str("dir", h.dir).Uint64("free_bytes", disk.Bytes).
			Msg("the disk of the hub is almost full; free some space, or files for runners are refused")
	}
	return low
}

// stamp changes when a runner was enrolled or removed.
func (h *hubServer) stamp() string {
	entries, err := os.ReadDir(filepath.Join(h.dir, runnersDir))
	if err != nil {
		return ""
	}
	var all strings.Builder
	for _, e := range entries {
		if info, err := e.Info(); err == nil && !hidden(e.Name()) {
			fmt.Fprintln(&all, e.Name(), info.ModTime().UnixNano(), info.Size())
		}
	}
	return all.String()
}

// reload gives the server the runners of now.
func (h *hubServer) reload(opts *server.Options) {
	users, err := readUsers(h.dir, h.set, func(words string) { h.log.Warn().Msg(words) })
	if err != nil {
		h.log.Error().Err(err).Msg("cannot read the runners; those of before stay")
		return
	}
	next := opts.Clone()
	next.Nkeys = users
	if err := h.server.ReloadOptions(next); err != nil {
		h.log.Error().Err(err).Msg("cannot take the runners in; start the hub again")
		return
	}
	h.log.Info().Int("runners", len(users)-1).Msg("runners read again")
}

// A logger writes what the server says to the log of the hub.
type logger struct {
	log   zerolog.Logger
	fatal chan string
	once  sync.Once
}

// Noticef is what an operator seldom needs.
func (l *logger) Noticef(format string, v ...any) { l.log.Debug().Msgf(format, v...) }

// Warnf is a warning.
func (l *logger) Warnf(format string, v ...any) { l.log.Warn().Msgf(format, v...) }

// Errorf is an error.
func (l *logger) Errorf(format string, v ...any) { l.log.Error().Msgf(format, v...) }

// Debugf is never called.
func (l *logger) Debugf(string, ...any) {}

// Tracef is never called.
func (l *logger) Tracef(string, ...any) {}

// Fatalf ends the hub.
func (l *logger) Fatalf(format string, v ...any) {
	l.once.Do(func() { l.fatal <- fmt.Sprintf(format, v...) })
}
