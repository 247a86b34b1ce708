package main

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// unmap lets go of the pages of the program's own file, and has the system map
// those again that are needed. It maps 64 KB and more around each page that is
// touched, so nearly the whole file, 21 MB, counts as ours once we have started;
// without work we need 3 to 8. They stay in the system's memory as long as it has no
// other use for it, so no disk is read.
//
// A page of which we have a copy of our own, as a linker or a debugger makes
// them, would be lost: where there is one, and where we may write, nothing is
// let go of.
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

// unmapFile lets go of a file in the mappings that smaps, of proc(5), tells of.
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
