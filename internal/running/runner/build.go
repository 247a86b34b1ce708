package runner

import (
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"os"
	"syscall"
)

// BuildID identifies the file of this program, of a version. An upgrade or a copy is another build.
func BuildID(version string) (string, error) {
	info, err := os.Stat("/proc/self/exe")
	if err != nil {
		return "", fmt.Errorf("name build: %w", err)
	}
	file := info.Sys().(*syscall.Stat_t)
	hash := fnv.New64a()
	fmt.Fprint(hash, version, file.Dev, file.Ino, file.Size, info.ModTime().UnixNano())
	return hex.EncodeToString(hash.Sum(nil)), nil
}
