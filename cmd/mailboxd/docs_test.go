package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A block is one fenced console block of a page: commands behind "$ ", and
// below each what it prints.
type block struct {
	line     int // where it stands
	commands []command
}

type command struct {
	text string
	want string // what it prints on standard output; "" when the page does not say
}

// Each page is one person at one shell: its blocks run one after the other in
// an empty home. What it says they print has to be what they print, but for
// ids, times and places, which are somebody else's each time.
func TestEveryCommandOfTheDocsDoesWhatThePageSays(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range append(pages, "../../README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		blocks := consoleBlocks(t, filepath.Base(page), string(text))
		if len(blocks) == 0 {
			continue
		}
		t.Run(filepath.Base(page), func(t *testing.T) {
			t.Parallel()
			readAlong(t, blocks)
		})
	}
}

// consoleBlocks finds the blocks of a page. A block of shell commands that is
// not marked as a console's would be one that no test runs.
func consoleBlocks(t *testing.T, page, text string) (blocks []block) {
	t.Helper()
	fence, open := "", block{}
	for i, line := range strings.Split(text, "\n") {
		mark, fenced := strings.CutPrefix(line, "```")
		switch {
		case fenced && fence == "":
			fence, open = mark+" ", block{line: i + 1}
			if mark == "sh" || mark == "bash" || mark == "shell" {
				t.Errorf("%s:%d: write ```console, and $ before each command, so that the page is tested", page, i+1)
			}
		case fenced:
			if strings.HasPrefix(fence, "console") {
				blocks = append(blocks, open)
			}
			fence = ""
		case fence == "" || !strings.HasPrefix(fence, "console"):
		case strings.HasPrefix(line, "$ "):
			open.commands = append(open.commands, command{text: line[2:]})
		case len(open.commands) == 0:
			t.Errorf("%s:%d: output before any command", page, i+1)
		default:
			last := &open.commands[len(open.commands)-1]
			if strings.HasSuffix(last.text, "\\") && last.want == "" {
				last.text += "\n" + line
				continue
			}
			last.want += line + "\n"
		}
	}
	return blocks
}

// readAlong runs the blocks in one shell and compares what each command prints.
func readAlong(t *testing.T, blocks []block) {
	home := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	shell := exec.CommandContext(ctx, "bash", "-c", session(blocks))
	shell.Dir, shell.Env = home, visitor(t, home)
	var stdout, stderr bytes.Buffer
	shell.Stdout, shell.Stderr = &stdout, &stderr
	shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	shell.Cancel = func() error { return syscall.Kill(-shell.Process.Pid, syscall.SIGKILL) }
	shell.WaitDelay = 5 * time.Second
	if err := shell.Run(); err != nil {
		t.Fatalf("the page's commands: %v\nstdout:\n%s\nstderr:\n%s", err, &stdout, &stderr)
	}
	printed := strings.Split(stdout.String(), separator+"\n")
	n := 0
	for _, b := range blocks {
		for _, c := range b.commands {
			got := printed[n]
			n++
			if c.want != "" && placeless(got, home) != placeless(c.want, home) {
				t.Errorf("line %d: $ %s\nprints:\n%s\nthe page says:\n%s", b.line, c.text, got, c.want)
			}
		}
	}
}

const separator = "=== next command ==="

// session is the script of a whole page. A command that fails does not end it:
// pages show failures too. What is still in the background at the end is.
func session(blocks []block) string {
	var script strings.Builder
	for _, b := range blocks {
		for _, c := range b.commands {
			fmt.Fprintf(&script, "%s\necho '%s'\n", c.text, separator)
		}
	}
	script.WriteString("kill $(jobs -p) 2>/dev/null; wait; exit 0\n")
	return script.String()
}

// visitor is the environment of somebody who comes for the first time. The
// system's own commands that a page names, and a test must not run, are
// stood in for.
func visitor(t *testing.T, home string) []string {
	t.Helper()
	bin := filepath.Join(home, "bin")
	standIns := map[string]string{
		"systemctl": "exit 0", "loginctl": "exit 0", "journalctl": "exit 0",
		"go": `if [ "$1 $2" = "run ./cmd/mailboxd" ]; then shift 2; exec mailboxd "$@"; fi; exit 0`, // CI runs the rest
	}
	if err := os.Mkdir(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, script := range standIns {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return []string{
		"PATH=" + bin + ":" + os.Getenv("PATH"), "HOME=" + home, "LANG=C.UTF-8", "USER=" + os.Getenv("USER"),
		"XDG_RUNTIME_DIR=" + filepath.Join(home, ".run"),
	}
}

// placeless takes out of an output what is another one each time.
func placeless(text, home string) string {
	text = strings.ReplaceAll(text, home, "~")
	for _, v := range variable {
		text = v.pattern.ReplaceAllString(text, v.instead)
	}
	return strings.TrimSpace(text)
}

var variable = []struct {
	pattern *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`/home/[a-z]+`), "~"},
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "ID"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)?`), "TIME"},
	{regexp.MustCompile(`\b\d+(\.\d+)?(ms|s|m|h|d)\b`), "DURATION"},
	{regexp.MustCompile(`process \d+`), "process N"},
	{regexp.MustCompile(`[ \t]+`), " "},
}
