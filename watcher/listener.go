package watcher

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/sys/unix"
)

// An ear hears what happens in some directories, as long as it can.
type ear struct {
	dirs    []string
	beside  []string // what happens in these is not looked at at once
	rescan  time.Duration
	next    *time.Timer            // until it is looked by the clock
	watcher *fsnotify.Watcher      // nil when there are no events to be had
	watched map[string]os.FileInfo // what the names meant that it watches; nil when it may miss something
	closing sync.WaitGroup         // of watchers before: it takes the kernel some milliseconds
}

// listen hints at every event and every rescan until ctx ends. When a directory
// came or went, it watches everything anew, and at a rescan where that may have
// gone unseen: a watch sticks to the directory it was made for, not to the name.
func (e *ear) listen(ctx context.Context, h hints) {
	e.next = time.NewTimer(0)
	all := e.all()
	defer e.closing.Wait()
	defer e.replace(nil)
	defer e.next.Stop()
	for {
		var events chan fsnotify.Event // nil, and never ready, without a watcher
		var failures chan error
		if e.watcher != nil {
			events, failures = e.watcher.Events, e.watcher.Errors
		}
		select {
		case <-ctx.Done():
			return
		case <-e.next.C:
			if e.sound() {
				e.next.Reset(untilNext(e.rescan))
			} else {
				e.anew()
			}
		case event, ok := <-events:
			switch {
			case !ok || comesOrGoes(event, all):
				e.anew()
			case happensIn(event, e.dirs):
			case happensIn(event, e.beside):
				hint(h.soon)
				continue
			default:
				continue
			}
		case err := <-failures:
			e.watched = nil // what was lost may be that a directory went
			if !errors.Is(err, fsnotify.ErrEventOverflow) {
				e.replace(nil)
				e.next.Reset(min(e.rescan, poll))
			}
		}
		hint(h.now)
	}
}

func (e *ear) all() []string { return slices.Concat(e.dirs, e.beside) }

// anew watches everything anew, and by the clock what cannot be watched.
func (e *ear) anew() {
	var fresh *fsnotify.Watcher
	fresh, e.watched = watch(e.all())
	e.replace(fresh) // only now, so that no moment is unwatched
	if e.watched != nil {
		e.next.Reset(untilNext(e.rescan))
	} else {
		e.next.Reset(min(e.rescan, poll))
	}
}

// untilNext is how long it is until the next whole multiple of d on the clock.
// Whatever is done every half minute is done in the same one then, and a daemon
// without work wakes up once for all of it.
func untilNext(d time.Duration) time.Duration { return time.Until(time.Now().Truncate(d).Add(d)) }

// sound reports whether all the names still mean what is watched, and it is
// watched: what is removed, moved or unmounted is not any more. Watching
// anew at each rescan would be most of what a daemon without work does.
func (e *ear) sound() bool {
	if e.watcher == nil || e.watched == nil {
		return false
	}
	list := e.watcher.WatchList()
	for path, then := range e.watched {
		now, err := os.Stat(path)
		if err != nil || !os.SameFile(then, now) || !slices.Contains(list, path) {
			return false
		}
	}
	return true
}

func (e *ear) replace(fresh *fsnotify.Watcher) {
	if old := e.watcher; old != nil {
		e.closing.Go(func() { old.Close() }) // the watches end with it, whatever it says
	}
	e.watcher = fresh
}

// watch watches the directories, and what they are in to see them come and go.
// It returns what that is when it is the whole, and nil otherwise: then one has
// to look by the clock. Without any events to be had, the watcher is nil.
func watch(dirs []string) (w *fsnotify.Watcher, watched map[string]os.FileInfo) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, nil // no more files, or no more watchers: try again later
	}
	watched = map[string]os.FileInfo{}
	whole := true
	for _, dir := range dirs {
		for _, path := range []string{filepath.Dir(dir), filepath.Clean(dir)} {
			info, err := os.Stat(path) // first: what it means after this is seen to be another
			watched[path] = info
			whole = whole && err == nil
			if err := w.Add(path); err != nil {
				whole = false
			}
		}
		whole = whole && local(dir)
	}
	if !whole {
		return w, nil
	}
	return w, watched
}

// comesOrGoes reports whether the event is about a watched directory itself, or
// about the one it is in.
func comesOrGoes(event fsnotify.Event, dirs []string) bool {
	const structural = fsnotify.Create | fsnotify.Remove | fsnotify.Rename
	return event.Op&structural != 0 && slices.ContainsFunc(dirs, func(dir string) bool {
		return event.Name == filepath.Clean(dir) || event.Name == filepath.Dir(dir)
	})
}

// happensIn reports whether the event is about something in a directory.
func happensIn(event fsnotify.Event, dirs []string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool {
		return filepath.Dir(event.Name) == filepath.Clean(dir)
	})
}

// local reports whether all writers of a directory go through this kernel, so
// that it can tell of each.
func local(dir string) bool {
	var about unix.Statfs_t
	if err := unix.Statfs(dir, &about); err != nil {
		return false
	}
	switch uint32(about.Type) {
	case unix.NFS_SUPER_MAGIC, unix.SMB_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC,
		unix.V9FS_MAGIC, unix.FUSE_SUPER_MAGIC, unix.AFS_SUPER_MAGIC, unix.CEPH_SUPER_MAGIC:
		return false
	}
	return true
}
