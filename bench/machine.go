package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// machine describes the machine of a table.
func (l *lab) machine() string {
	var kernel unix.Utsname
	_ = unix.Uname(&kernel)
	return fmt.Sprintf("%s, %d processors, %d GB; Linux %s, %s; %s; static programs by %s; %s; load %s before; %d rounds.%s",
		processor(), runtime.NumCPU(), memory()>>30, unix.ByteSliceToString(kernel.Release[:]), fileSystem(l.dir),
		runtime.Version(), l.tools.compiler, time.Now().Format(time.DateOnly), l.load, l.rounds, &l.gauge)
}

func processor() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if name, ok := strings.CutPrefix(lines.Text(), "model name"); ok {
			return strings.TrimLeft(name, "\t :")
		}
	}
	return runtime.GOARCH
}

// loadAverage returns the load average of the last minute.
func loadAverage() string {
	raw, _ := os.ReadFile("/proc/loadavg")
	words := strings.Fields(string(raw) + " unknown")
	return words[0]
}

// memory returns the size of the memory, rounded up to whole GB.
func memory() uint64 {
	var info unix.Sysinfo_t
	_ = unix.Sysinfo(&info)
	return info.Totalram*uint64(info.Unit) + 1<<30 - 1
}
