// Package filehash hashes the files of programs, and remembers the hashes of large ones.
package filehash

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// rememberedSize is the size from which the hash of a file is remembered. Smaller files are
	// read each time, so nothing that leaves their times alone, such as a memory mapping, hides a
	// change.
	rememberedSize = 1 << 20
	// mostHashed is the size up to which files are read.
	mostHashed = 1 << 30
	// settled is how old the last change of a file has to be before its hash is remembered: two
	// changes at nearly the same moment may have the same time.
	settled = time.Second
	// mostRemembered limits the remembered hashes.
	mostRemembered = 256
)

// A fileIdentity is what a change of a file alters.
type fileIdentity struct {
	device, inode uint64
	size          int64
	changed       unix.Timespec // the time of the last change of the content or the inode
}

func identityOf(s *unix.Stat_t) fileIdentity {
	return fileIdentity{uint64(s.Dev), s.Ino, s.Size, s.Ctim}
}

// String stands for the content of a file that isn't read.
func (i fileIdentity) String() string {
	changed := time.Unix(i.changed.Unix()).UTC().Format(time.RFC3339Nano)
	return fmt.Sprintf("not read: device %d, inode %d, %d bytes, changed %s", i.device, i.inode, i.size, changed)
}

// A Hashes hashes files, and remembers the hashes of large ones. The zero value is ready; it may
// be used concurrently.
type Hashes struct {
	mu         sync.Mutex // guards remembered, and lets one large file be read at a time
	remembered map[fileIdentity]string
	reads      int              // of large files
	now        func() time.Time // nil: time.Now
}

// Of returns the SHA-256 of a file in hexadecimal. For a file that can't be read, or is too large,
// it returns what a change alters; "" if there is no regular file.
func (h *Hashes) Of(path string) string {
	var s unix.Stat_t
	if err := unix.Stat(path, &s); err != nil || s.Mode&unix.S_IFMT != unix.S_IFREG {
		return ""
	}
	if s.Size < rememberedSize {
		sum, _, err := hashFile(path)
		if err != nil {
			return identityOf(&s).String()
		}
		return sum
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if sum, ok := h.remembered[identityOf(&s)]; ok {
		return sum
	}
	h.reads++
	began := h.clock()
	sum, identity, err := hashFile(path)
	if err != nil {
		return identityOf(&s).String()
	}
	if began.Sub(time.Unix(identity.changed.Unix())) > settled {
		if h.remembered == nil || len(h.remembered) >= mostRemembered {
			h.remembered = map[fileIdentity]string{}
		}
		h.remembered[identity] = sum
	}
	return sum
}

func (h *Hashes) clock() time.Time {
	if h.now == nil {
		return time.Now()
	}
	return h.now()
}

// errUnsteady says that a file changed while it was read.
var errUnsteady = errors.New("it changes while it is read")

// hashFile returns the SHA-256 of a file, and its identity before and after.
func hashFile(path string) (string, fileIdentity, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return "", fileIdentity{}, err
	}
	defer file.Close()
	var before, after unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &before); err != nil {
		return "", fileIdentity{}, err
	}
	if before.Mode&unix.S_IFMT != unix.S_IFREG || before.Size > mostHashed {
		return "", fileIdentity{}, errors.New("it is no file that is read")
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, io.LimitReader(file, mostHashed)); err != nil {
		return "", fileIdentity{}, err
	}
	if err := unix.Fstat(int(file.Fd()), &after); err != nil {
		return "", fileIdentity{}, err
	}
	if identityOf(&before) != identityOf(&after) {
		return "", fileIdentity{}, errUnsteady
	}
	return hex.EncodeToString(sum.Sum(nil)), identityOf(&after), nil
}
