package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"mailboxd/internal/access/client"
	"mailboxd/mailbox"
)

// backlog measures the intake of lines without other work: the agent has one task that does not
// end, and the others wait for it. The offset in the ledger counts, so the lines are durable.
func backlog(ctx context.Context, l *lab) ([]row, error) {
	count, rounds := l.large()
	if err := l.room(uint64(count) * 6 * lineSize); err != nil {
		return nil, err
	}
	rows := []row{
		{who: "lines taken in", unit: "lines/s"}, {who: "the same", unit: "MB/s"},
		{who: "peak RSS", unit: "MB"}, {who: "ledger", unit: "MB"}, {who: "RSS of one more waiting task", unit: "bytes"}, {who: "mailboxd ps while they wait", unit: "ms"},
	}
	for range rounds {
		got, err := l.takenIn(ctx, count)
		if err != nil {
			return nil, err
		}
		l.say("  %.0f lines a second", got[0])
		for i := range rows {
			rows[i].tasks, rows[i].got = count, append(rows[i].got, got[i])
		}
	}
	return rows, nil
}

// large returns the number of tasks that is large, and the number of rounds with it.
func (l *lab) large() (count, rounds int) {
	if l.long {
		return 1_000_000, 1
	}
	return 20 * l.tasks, min(l.rounds, 3)
}

// takenIn measures the intake of one backlog, and returns the figures of the rows.
func (l *lab) takenIn(ctx context.Context, count int) (got []float64, err error) {
	err = l.in(ctx, func(dir string) error {
		ctx, cancel := context.WithTimeout(ctx, limit(count))
		defer cancel()
		p := processes(1, "sleep", "infinity")
		p.queue = count + 1
		h, err := l.newDaemon(dir, p)
		if err != nil {
			return err
		}
		if err := h.start(ctx); err != nil {
			return err
		}
		got, err = h.takeIn(ctx, count)
		return errors.Join(err, h.stop())
	})
	return got, err
}

// takeIn gives a backlog to a daemon that is ready.
func (h *daemon) takeIn(ctx context.Context, count int) ([]float64, error) {
	if err := h.awaitReady(ctx); err != nil {
		return nil, err
	}
	before, err := status(h.daemon.Process.Pid)
	if err != nil {
		return nil, err
	}
	aside := filepath.Join(h.dir, "backlog")
	if err := layBacklog(aside, count); err != nil {
		return nil, err
	}
	begin := time.Now()
	if err := os.Rename(aside, h.tasks()); err != nil {
		return nil, err
	}
	if err := h.awaitIntake(ctx, count); err != nil {
		return nil, err
	}
	took := time.Since(begin).Seconds()
	after, err := status(h.daemon.Process.Pid)
	if err != nil {
		return nil, err
	}
	ledger, err := h.ledgerSize()
	if err != nil {
		return nil, err
	}
	look, err := h.asked(ctx, "ps")
	const mb = 1e6
	return []float64{
		float64(count) / took, float64(count) * lineSize / took / mb, after.peak / mb, ledger / mb,
		(after.rss - before.rss) / float64(count), look,
	}, err
}

// awaitIntake blocks until the ledger has that many lines. It fails if they did not all become
// tasks.
func (h *daemon) awaitIntake(ctx context.Context, count int) error {
	c, err := h.client(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	for read := int64(0); read < int64(count)*lineSize; time.Sleep(10 * time.Millisecond) {
		files, err := c.Files(ctx)
		if err != nil {
			return err
		}
		if len(files) == 1 {
			read = files[0].Offset
		}
	}
	s, err := c.Status(ctx)
	if err != nil {
		return err
	}
	if s.Open["queued"] != count-1 || s.Open["running"] != 1 {
		return fmt.Errorf("%d lines became %v", count, s.Open)
	}
	return nil
}

// client connects to the daemon.
func (h *daemon) client(ctx context.Context) (*client.Client, error) {
	slug, err := mailbox.Slug(filepath.Join(h.dir, "box"))
	if err != nil {
		return nil, err
	}
	return client.Open(ctx, client.SocketPath{Dir: filepath.Join(h.dir, "run/mailboxd"), Name: slug + ".sock"})
}

// ledgerSize returns the disk space of the ledger, in bytes.
func (h *daemon) ledgerSize() (size float64, err error) {
	files, err := filepath.Glob(filepath.Join(h.state(), "ledger.db*"))
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil {
			return 0, err
		}
		size += float64(info.Size())
	}
	return size, err
}
