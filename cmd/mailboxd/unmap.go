package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// unmapAfter is how long after the first change of a spell of work pages are
// unmapped. To map those again that are needed takes some milliseconds.
const unmapAfter = 10 * time.Second

// unmapAtRest unmaps pages at the start, and again some time after each change,
// until ctx ends. Changed is the ledger's.
func unmapAtRest(ctx context.Context, ready <-chan struct{}, changed func() <-chan struct{}, unmap func()) error {
	select {
	case <-ctx.Done():
	case <-ready:
	}
	for ctx.Err() == nil {
		change := changed()
		unmap()
		select {
		case <-ctx.Done():
		case <-change:
			pause(ctx, unmapAfter)
		}
	}
	return nil
}

// unmap unmaps the pages of the program's own file. The system maps those again
// that are needed: it maps 64 KB and more around each page that is touched, so
// after the start nearly the whole file, 21 MB, counts as memory of the daemon,
// which needs 3 to 8 of it. Without this an idle daemon has 28 MB before its first
// task and 33 after 100; with it 14 to 20, and 21. The pages stay in the page cache,
// so no disk is read.
//
// A page that the process has a copy of its own of, as a linker or a debugger
// makes them, would be lost. Mappings with such pages and those that can be
// written are left alone.
func unmap() {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	text, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return
	}
	unmapFile(string(text), program)
}

// unmapFile unmaps a file in the mappings that smaps, of proc(5), lists.
func unmapFile(smaps, file string) {
	var from, to uintptr // of a mapping of the file that is only read
	for line := range strings.Lines(smaps) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		switch {
		case !strings.HasSuffix(name, ":"): // it opens a mapping
			from, to = 0, 0
			if strings.HasPrefix(value, "r-") && strings.HasSuffix(value, " "+file) {
				_, _ = fmt.Sscanf(name, "%x-%x", &from, &to)
			}
		case name == "Anonymous:" && strings.TrimSpace(value) == "0 kB" && from < to:
			_, _, _ = unix.Syscall(unix.SYS_MADVISE, from, to-from, unix.MADV_DONTNEED)
		}
	}
}

// pause waits, unless ctx ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
