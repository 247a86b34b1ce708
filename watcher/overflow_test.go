package watcher_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"mailboxd/internal/testtools/slowtest"
	"mailboxd/watcher"
)

func TestALookFollowsWhenEventsWereLost(t *testing.T) {
	slowtest.SkipShort(t, "it waits for seconds")
	text, err := os.ReadFile("/proc/sys/fs/inotify/max_queued_events")
	if err != nil {
		t.Skip(err)
	}
	most, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || most > 100_000 {
		t.Skipf("a queue of %s events is too long to overflow here", text)
	}
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	looks, seen := 0, 0
	look := func() {
		looks++
		if looks == 1 { // no events are read during a look, so a full queue loses some
			for i := range most + 5000 {
				if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), nil, 0o600); err != nil {
					t.Error(err)
				}
			}
			return
		}
		names, err := os.ReadDir(dir)
		if err != nil {
			t.Error(err)
		}
		if seen = len(names); seen == most+5000 {
			cancel()
		}
	}
	if err := watcher.Watch(ctx, []string{dir}, time.Hour, look); err != nil {
		t.Fatal(err)
	}
	if seen != most+5000 {
		t.Errorf("saw %d files in %d looks; want %d", seen, looks, most+5000)
	}
}
