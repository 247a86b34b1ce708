package watcher_test

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"mailboxd/internal/testtools/slowtest"
	"mailboxd/watcher"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// watch watches the directories until the test ends. Every look sends on looks and blocks until
// the test receives, so that the test sees each.
func watch(t *testing.T, rescan time.Duration, dirs ...string) (looks <-chan struct{}) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	c := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		err := watcher.Watch(ctx, dirs, rescan, func() {
			select {
			case c <- struct{}{}:
			case <-ctx.Done():
			}
		})
		if err != nil {
			t.Errorf("Watch = %v, want nil", err)
		}
	})
	t.Cleanup(func() {
		cancel()
		watching.Wait()
	})
	return c
}

// until waits for looks until one of them finds what it looks for.
func until(looks <-chan struct{}, found func() bool) {
	for range looks {
		if found() {
			return
		}
	}
}

func write(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestWatchLooksOnceAtTheStart(t *testing.T) {
	<-watch(t, time.Hour, t.TempDir())
}

func TestWatchLooksAtEveryKindOfChange(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	path := dir + "/x"
	looks := watch(t, time.Hour, dir, other)
	<-looks
	for _, change := range []func() error{
		func() error { return os.WriteFile(path, nil, 0o600) },
		func() error { return os.WriteFile(path, []byte("x"), 0o600) },
		func() error { return os.Truncate(path, 0) },
		func() error { return os.Rename(path, other+"/y") },
		func() error { return os.Remove(other + "/y") },
	} {
		if err := change(); err != nil {
			t.Fatal(err)
		}
		<-looks
	}
}

func TestAnEventInABesideDirectoryCausesALook(t *testing.T) {
	dir, beside := t.TempDir(), t.TempDir()+"/beside"
	if err := os.Mkdir(beside, 0o700); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	looks := 0
	err := watcher.WatchBeside(ctx, []string{dir}, []string{beside}, time.Hour, func() {
		switch looks++; looks {
		case 1:
			write(t, beside+"/x")
		case 2:
			if err := os.RemoveAll(beside); err != nil {
				t.Error(err)
			}
		default:
			if _, err := os.Stat(beside); err != nil {
				cancel()
			}
		}
	})
	if err != nil || looks < 3 {
		t.Errorf("WatchBeside = %v after %d looks; want nil after one at the start, at a file and at the loss", err, looks)
	}
}

func TestWatchIsNotStarvedByABusyWriter(t *testing.T) {
	dir := t.TempDir()
	looks := watch(t, time.Hour, dir)
	<-looks
	stop := make(chan struct{})
	var writing sync.WaitGroup
	writing.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				write(t, dir+"/x")
			}
		}
	})
	for range 20 {
		<-looks
	}
	close(stop)
	writing.Wait()
}

func TestTheLastChangeIsLookedAt(t *testing.T) {
	dir := t.TempDir()
	looks := watch(t, time.Hour, dir)
	<-looks
	for n := range 5000 {
		write(t, filepath.Join(dir, string(rune('a'+n%26))))
	}
	write(t, dir+"/last")
	until(looks, func() bool {
		_, err := os.Stat(dir + "/last")
		return err == nil
	})
}

func TestWatchContinuesWhenTheDirectoryIsBack(t *testing.T) {
	slowtest.SkipShort(t, "it waits for seconds")
	root := t.TempDir() + "/root"
	dir := root + "/tasks"
	for name, lose := range map[string]func() error{
		"the directory removed": func() error { return os.Remove(dir) },
		"the directory moved":   func() error { return os.Rename(dir, dir+".old") },
		"the root removed":      func() error { return os.RemoveAll(root) },
		"the root moved":        func() error { return os.Rename(root, t.TempDir()+"/old") },
	} {
		t.Run(name, func(t *testing.T) {
			os.RemoveAll(root)
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			looks := watch(t, time.Hour, dir)
			<-looks
			if err := lose(); err != nil {
				t.Fatal(err)
			}
			<-looks // the loss is a change
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			write(t, dir+"/x")
			until(looks, func() bool {
				_, err := os.Stat(dir + "/x")
				return err == nil
			})
		})
	}
}

func TestWatchWaitsForADirectoryThatIsNotThereYet(t *testing.T) {
	dir := t.TempDir() + "/not/yet"
	looks := watch(t, time.Hour, dir)
	<-looks
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	<-looks
}

func TestWatchPollsWhileThereAreNoEvents(t *testing.T) { // row 45
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	none := limit
	none.Cur = 3 // no file can be opened, so no watcher either
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &none); err != nil {
		t.Fatal(err)
	}
	looks := watch(t, time.Hour, dir)
	for range 2 {
		<-looks
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	<-looks // tries again
	write(t, dir+"/x")
	<-looks
}

func TestWatchLooksAtEveryRescan(t *testing.T) {
	looks := watch(t, time.Millisecond, t.TempDir())
	for range 5 {
		<-looks
	}
}

func TestWatchEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	looks := 0
	err := watcher.Watch(ctx, []string{t.TempDir()}, time.Hour, func() {
		looks++
		cancel()
	})
	if looks != 1 || err != nil {
		t.Errorf("Watch = %v after %d looks; want nil after one", err, looks)
	}
}
