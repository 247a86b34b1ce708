package torture_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"mailboxd/envelope"
)

// watchResults reads results/ all the time, as a requester does, and fails
// when a file is not a whole result at any moment.
func (s *site) watchResults(ctx context.Context, b *book) error {
	known := map[string]time.Time{}
	for ctx.Err() == nil {
		entries, err := os.ReadDir(s.path("box/results"))
		if err != nil {
			return err
		}
		for _, entry := range entries {
			info, err := entry.Info()
			if err != nil || known[entry.Name()].Equal(info.ModTime()) {
				continue // gone since, or read already
			}
			known[entry.Name()] = info.ModTime()
			id := strings.TrimSuffix(entry.Name(), ".json")
			if strings.HasPrefix(id, "stray-") {
				continue
			}
			r, err := s.read(id)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			if r.AgentID == forger {
				continue // the daemon moves it away
			}
			if err == nil && r.Status == envelope.OK && b.unshown(id) {
				return fmt.Errorf("result %s is shown, and nobody had agreed to that", id)
			}
			b.seen(id)
		}
		pause, stop := context.WithTimeout(ctx, 2*time.Millisecond)
		<-pause.Done()
		stop()
	}
	return nil
}

// read reads one result as strictly as it can be read.
func (s *site) read(id string) (envelope.Result, error) {
	text, err := os.ReadFile(s.result(id))
	if err != nil {
		return envelope.Result{}, err
	}
	r, findings := envelope.DecodeResult(text)
	switch {
	case findings.Refused():
		return r, fmt.Errorf("result %s is not whole or not valid: %s: %q", id, findings, text)
	case string(r.TaskID) != id:
		return r, fmt.Errorf("result %s is for %q", id, r.TaskID)
	}
	return r, nil
}
