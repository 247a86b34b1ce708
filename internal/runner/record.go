package runner

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// maxRecord is more than any record of ours has: argv is the largest part.
const maxRecord = 4 << 20

// readRecord reads one of our own files out of a run directory. The agent can
// write there too, so it is neither followed elsewhere nor waited for.
func readRecord(dir, name string, record any) (bool, error) {
	f, err := os.OpenFile(inDir(dir, name), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read run: %w", err)
	}
	defer f.Close()
	data, err := readRegular(f)
	if err == nil {
		err = json.Unmarshal(data, record)
	}
	if err != nil {
		return false, fmt.Errorf("read run: %s: %w", inDir(dir, name), err)
	}
	return true, nil
}

func readRegular(f *os.File) ([]byte, error) {
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("is not a regular file")
	}
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(f, maxRecord))
}

// writeRecord makes a file that was not there.
func writeRecord(path string, record any) error {
	data, err := json.MarshalIndent(record, "", "  ")
	if err != nil {
		return fmt.Errorf("write run: %w", err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("write run: %w", err)
	}
	_, err = f.Write(append(data, '\n'))
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write run: %w", err)
	}
	return nil
}
