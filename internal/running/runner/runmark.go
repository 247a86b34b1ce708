package runner

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// A runMark identifies the processes of a run, independent of session, parent and
// environment. It is a resource limit that every process inherits and has no reason to
// change: the CPU time of a real-time thread without a pause (RLIMIT_RTTIME). Marks are
// values above a hundred years, so they limit nothing. Zero is no mark.
type runMark uint64

const (
	markBase = 1 << 52 // microseconds
	markBits = 61      // random bits above markBase; no two runs share a mark
)

// markFor returns the mark of the run in a directory. It depends on the path only, so it
// needs no record.
func markFor(dir string) runMark {
	sum := sha256.Sum256([]byte(dir))
	return markBase + runMark(binary.BigEndian.Uint64(sum[:])>>(64-markBits))
}

// set sets a mark for the children of this process until unset is called. A keeper must
// unset it: with the mark, a sweep takes the keeper for a part of the run. It returns zero
// if the system permits no mark.
func (m runMark) set() (is runMark, unset func()) {
	var before unix.Rlimit
	if unix.Prlimit(0, unix.RLIMIT_RTTIME, nil, &before) != nil {
		return 0, func() {}
	}
	marked := before
	marked.Cur = uint64(m)
	if unix.Prlimit(0, unix.RLIMIT_RTTIME, &marked, nil) != nil {
		return 0, func() {}
	}
	return m, func() {
		_ = unix.Prlimit(0, unix.RLIMIT_RTTIME, &before, nil) // a lowered soft limit can be restored
	}
}

// MarkSelf marks this process and all later children. A worker and its descendants are part
// of a run and have no mark otherwise. If the system permits no mark, MarkSelf does
// nothing.
func MarkSelf() { runMark(markBase + rand.Uint64N(1<<markBits)).set() }

// markOf returns the mark of a process, or zero.
func markOf(pid int) runMark {
	m, _ := readMark(pid) // gone, or another user's
	return m
}

// readMark returns the mark of a process, or zero. It returns an error if the limits can't
// be read.
func readMark(pid int) (runMark, error) {
	limits, err := readProc("/proc/" + strconv.Itoa(pid) + "/limits")
	if err != nil {
		return 0, err
	}
	_, rest, _ := bytes.Cut(limits, []byte("Max realtime timeout"))
	line, _, _ := strings.Cut(string(rest), "\n")
	fields := strings.Fields(line)
	if len(fields) == 0 {
		return 0, nil
	}
	n, err := strconv.ParseUint(fields[0], 10, 64)
	if err != nil || n < markBase {
		return 0, nil // "unlimited", or a real limit
	}
	return runMark(n), nil
}
