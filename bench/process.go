package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// startServer starts a program, and returns the address at the end of the first line that it prints.
func startServer(cmd *exec.Cmd) (address string, err error) {
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	said, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		endServer(cmd)
		return "", fmt.Errorf("read the address of %s %s: %w", filepath.Base(cmd.Path), cmd.Args[1], err)
	}
	return said[strings.LastIndexByte(said, ' ')+1 : len(said)-1], nil
}

// endServer ends a program that was measured.
func endServer(cmd *exec.Cmd) {
	_ = cmd.Process.Signal(syscall.SIGTERM)
	_ = cmd.Wait()
}

// A standing has figures of a process from the system.
type standing struct {
	rss, peak float64 // bytes
	own       float64 // bytes of rss that belong to no file; other processes may map the rest too
	waits     float64 // number of times that one of its threads slept, and so was woken
}

// status reads the standing of a process and its threads from /proc.
func status(pid int) (s standing, err error) {
	fields, err := statusFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return s, err
	}
	s.rss, s.peak, s.own = fields["VmRSS"]*1024, fields["VmHWM"]*1024, fields["RssAnon"]*1024
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	for _, thread := range threads {
		fields, err := statusFile(thread)
		if err != nil {
			return s, err
		}
		s.waits += fields["voluntary_ctxt_switches"]
	}
	return s, err
}

// statusFile reads the numbers of a status file of /proc.
func statusFile(path string) (map[string]float64, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("look at a process: %w", err)
	}
	fields := map[string]float64{}
	for lines := bufio.NewScanner(bytes.NewReader(raw)); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), ":")
		words := strings.Fields(value)
		if len(words) == 0 {
			continue
		}
		if n, err := strconv.ParseFloat(words[0], 64); err == nil {
			fields[name] = n
		}
	}
	return fields, nil
}

// keeper finds the keeper of a daemon; 0 if there is none.
func (h *daemon) keeper() (pid int, err error) { return keeperOf(h.state()) }

// keeperOf finds the keeper of a state directory; 0 if there is none.
func keeperOf(state string) (pid int, err error) {
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range lines {
		raw, _ := os.ReadFile(path) // it may have ended
		if args := string(raw); strings.Contains(args, "\x00keeper\x00") && strings.Contains(args, state) {
			return strconv.Atoi(filepath.Base(filepath.Dir(path)))
		}
	}
	return 0, err
}

// children returns the running children of a process.
func children(pid int) (pids []int) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, list := range lists {
		raw, _ := os.ReadFile(list) // its thread may have ended
		for word := range strings.FieldsSeq(string(raw)) {
			if child, err := strconv.Atoi(word); err == nil {
				pids = append(pids, child)
			}
		}
	}
	return pids
}

// ticks is the number of units of /proc/PID/stat in a second, on every machine.
const ticks = 100

// processorTime returns the processor time of a process and of its ended children; 0 if there
// is no such process.
func processorTime(pid int) time.Duration {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(raw), ") ") // the fields behind the name
	fields := strings.Fields(rest)
	var used time.Duration
	for _, field := range fields[11:15] { // utime, stime, and those of children
		n, _ := strconv.Atoi(field)
		used += time.Duration(n) * time.Second / ticks
	}
	return used
}
