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

// A listener receives events of directories, as long as the system gives them.
type listener struct {
	dirs    []string
	beside  []string // events in these directories may wait
	rescan  time.Duration
	next    *time.Timer            // the next check by the clock
	watcher *fsnotify.Watcher      // nil without events
	watched map[string]os.FileInfo // the watched names and their files; nil if some events may be missed
	closing sync.WaitGroup         // of earlier watchers: it takes the kernel some milliseconds
}

// listen gives a hint at every event and every rescan until ctx ends. When a directory
// appears or disappears, it makes a new watcher; also at a rescan if that may have been
// missed. A watch belongs to the directory and not to its name.
func (e *listener) listen(ctx context.Context, h hints) {
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
			if e.valid() {
				e.next.Reset(untilNext(e.rescan))
			} else {
				e.rewatch()
			}
		case event, ok := <-events:
			switch {
			case !ok || comesOrGoes(event, all):
				e.rewatch()
			case happensIn(event, e.dirs):
			case happensIn(event, e.beside):
				hint(h.soon)
				continue
			default:
				continue
			}
		case err := <-failures:
			e.watched = nil // the lost event may be the removal of a directory
			if !errors.Is(err, fsnotify.ErrEventOverflow) {
				e.replace(nil)
				e.next.Reset(min(e.rescan, poll))
			}
		}
		hint(h.now)
	}
}

func (e *listener) all() []string { return slices.Concat(e.dirs, e.beside) }

// rewatch makes a new watcher. It falls back to the clock if something can't be watched.
func (e *listener) rewatch() {
	var fresh *fsnotify.Watcher
	fresh, e.watched = watch(e.all())
	e.replace(fresh) // after the new watcher exists, so that no moment is unwatched
	if e.watched != nil {
		e.next.Reset(untilNext(e.rescan))
	} else {
		e.next.Reset(min(e.rescan, poll))
	}
}

// untilNext returns the time until the next multiple of d on the clock. Periodic work then
// happens at the same time, so that an idle daemon wakes once for all of it.
func untilNext(d time.Duration) time.Duration { return time.Until(time.Now().Truncate(d).Add(d)) }

// valid reports whether the watched names still mean the watched files: a removed, moved or
// unmounted directory is not watched any more. A new watcher at each rescan would be most
// of the work of an idle daemon.
func (e *listener) valid() bool {
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

func (e *listener) replace(fresh *fsnotify.Watcher) {
	if old := e.watcher; old != nil {
		e.closing.Go(func() { old.Close() }) // its error doesn't matter: the watches end in any case
	}
	e.watcher = fresh
}

// watch watches the directories, and their parents for changes of the directories
// themselves. It returns the watched files if everything is watched, and nil otherwise:
// then the clock has to help. Without any events, the watcher is nil.
func watch(dirs []string) (w *fsnotify.Watcher, watched map[string]os.FileInfo) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, nil // too many files or watchers: try again later
	}
	watched = map[string]os.FileInfo{}
	whole := true
	for _, dir := range dirs {
		for _, path := range []string{filepath.Dir(dir), filepath.Clean(dir)} {
			info, err := os.Stat(path) // before the watch: a later change of the name is then visible
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

// comesOrGoes reports whether the event is about a watched directory itself or its parent.
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

// local reports whether all writers of a directory use this kernel, so that it sees all
// events.
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
