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

// A mark tells the processes of one run from all others, whatever they do to
// their session, parents and environment: it is a limit that every process
// inherits and none has a reason to change, on the time that a real-time thread
// may run without a pause. Marks are upwards of a hundred years, so they limit
// nothing. Zero is no mark.
type mark uint64

const (
	markBase = 1 << 52 // microseconds
	markBits = 61      // above it: no two runs share a mark
)

// markFor is the mark of the run in a directory: whoever knows that needs no
// record of it.
func markFor(dir string) mark {
	sum := sha256.Sum256([]byte(dir))
	return markBase + mark(binary.BigEndian.Uint64(sum[:])>>(64-markBits))
}

// set sets a mark for the processes that this one starts until it calls unset. A
// keeper must: as long as it bears the mark itself, a sweep takes it for part of
// the run. It returns zero where none may be set.
func (m mark) set() (is mark, unset func()) {
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
		_ = unix.Prlimit(0, unix.RLIMIT_RTTIME, &before, nil) // what could be lowered can be put back
	}
}

// Brand marks this process, and with it whatever it starts from now on: a worker
// is part of a run, as is all that descends from one, and has no mark otherwise.
// Where no mark may be set, it does nothing.
func Brand() { mark(markBase + rand.Uint64N(1<<markBits)).set() }

// markOf returns the mark of a process, or zero.
func markOf(pid int) mark {
	m, _ := readMark(pid) // gone, or somebody else's
	return m
}

// readMark returns the mark of a process, zero when it has none, or why that
// cannot be seen.
func readMark(pid int) (mark, error) {
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
		return 0, nil // "unlimited", or somebody's real limit
	}
	return mark(n), nil
}
