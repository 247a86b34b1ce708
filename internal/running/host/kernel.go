package host

import (
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
)

// settingsOfKernel are always among KernelSettings, since drivers add to them.
var settingsOfKernel = []string{"sys", "sysrq-trigger", "irq", "bus", "fs", "acpi", "asound", "scsi", "driver"}

// KernelSettings returns the files and directories directly below /proc with settings of the
// kernel, besides the directories of processes. It looks once.
var KernelSettings = sync.OnceValue(func() []string { return kernelSettings("/proc") })

// kernelSettings returns the entries with anything that may be written, and settingsOfKernel.
func kernelSettings(proc string) (paths []string) {
	entries, err := os.ReadDir(proc)
	if err != nil {
		entries = nil // what is always among them is there, or left out
	}
	known := map[string]bool{}
	for _, name := range settingsOfKernel {
		known[name] = true
		if _, err := os.Lstat(filepath.Join(proc, name)); err == nil {
			paths = append(paths, filepath.Join(proc, name))
		}
	}
	for _, e := range entries {
		_, process := strconv.Atoi(e.Name())
		if process == nil || known[e.Name()] || e.Type()&fs.ModeSymlink != 0 {
			continue
		}
		if path := filepath.Join(proc, e.Name()); hasWritable(path) {
			paths = append(paths, path)
		}
	}
	return paths
}

// hasWritable reports whether a file, or one below a directory, has a permission to write.
func hasWritable(path string) (found bool) {
	_ = filepath.WalkDir(path, func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil // it is gone, or closed to this user
		}
		const write = 0o222
		if info, err := e.Info(); err == nil && !e.IsDir() && info.Mode()&fs.ModeSymlink == 0 && info.Mode()&write != 0 {
			found = true
			return fs.SkipAll
		}
		return nil
	})
	return found
}
