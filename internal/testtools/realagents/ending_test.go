package realagents_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"mailboxd/internal/testtools/realagents/fakemodel"
)

// shellRun is a call that runs a command with a shell, in the words of a program.
func (b *box) shellRun(command string) fakemodel.Reply {
	input := map[string]any{"command": command, "description": "run"}
	switch b.program.name {
	case "claude":
		return fakemodel.ToolCall("Bash", input)
	case "codex":
		return fakemodel.ToolCall("exec_command", map[string]any{"cmd": command, "yield_time_ms": 30000})
	case "gemini":
		return fakemodel.ToolCall("run_shell_command", input)
	}
	return fakemodel.ToolCall("bash", input)
}

// await waits until a condition holds.
func (b *box) await(what string, holds func() bool) {
	b.t.Helper()
	for begun := time.Now(); !holds(); time.Sleep(50 * time.Millisecond) { // between two looks
		if time.Since(begun) > patience {
			b.t.Fatalf("%s was not so after %v", what, patience)
		}
	}
}

// killDaemon kills the daemon as the kernel does when memory is short, and starts another one.
func (b *box) killDaemon() {
	b.t.Helper()
	if err := b.daemon.Process.Kill(); err != nil {
		b.t.Fatal(err)
	}
	if _, err := b.daemon.Process.Wait(); err != nil { // its keeper still has its standard error
		b.t.Fatal(err)
	}
	b.serve()
}

// left returns the processes of the box that are no mailboxd: those that have its home directory
// in their environment, and those that have a file or a directory below it open.
func (b *box) left() (all []string) {
	b.t.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		b.t.Fatal(err)
	}
	for _, dir := range dirs {
		if dir == fmt.Sprint("/proc/", os.Getpid()) || dir == fmt.Sprint("/proc/", os.Getppid()) {
			continue
		}
		program, _ := os.Readlink(filepath.Join(dir, "exe")) // a process may end meanwhile, here and below
		if program == "" || filepath.Base(program) == "mailboxd" {
			continue
		}
		environ, _ := os.ReadFile(filepath.Join(dir, "environ"))
		open, _ := filepath.Glob(filepath.Join(dir, "fd", "*"))
		ours := bytes.Contains(append([]byte{0}, environ...), []byte("\x00HOME="+b.home+"\x00"))
		for _, link := range append(open, filepath.Join(dir, "cwd")) {
			path, _ := os.Readlink(link)
			ours = ours || strings.HasPrefix(path, b.home+"/")
		}
		if ours {
			line, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
			all = append(all, filepath.Base(dir)+" "+program+" "+strconv.QuoteToASCII(string(line)))
		}
	}
	return all
}

// nothingLeft fails the test if a process of the program still runs.
func (b *box) nothingLeft(after string) {
	b.t.Helper()
	if left := b.left(); len(left) > 0 {
		b.t.Errorf("after %s, these still run:\n%s", after, strings.Join(left, "\n"))
	}
}

// follow runs logs -f beside the test, once the task is accepted. The returned function waits for
// its end, and returns what it printed on both outputs.
func (b *box) follow(id string) (printed func() string) {
	b.t.Helper()
	b.awaitTask(id)
	cmd := exec.CommandContext(b.t.Context(), os.Getenv(daemonVariable), "logs", id, "-f")
	cmd.Dir, cmd.Env = b.work, b.env
	var out output
	cmd.Stdout, cmd.Stderr = &out, &out
	var following sync.WaitGroup
	following.Go(func() { _ = cmd.Run() }) // what it printed says whether it worked
	return func() string {
		following.Wait()
		return out.String()
	}
}

// awaitTask waits until the daemon has accepted a task.
func (b *box) awaitTask(id string) {
	b.t.Helper()
	b.await("the task", func() bool { return b.mailboxd(b.work, "show", id, "--json").code == 0 })
}

func TestARunGoesOnWhenTheDaemonIsKilledInACallAndInAnAnswer(t *testing.T) {
	forEach(t, func(t *testing.T, b *box) {
		b.plain()
		b.serve()
		b.entry("permission: edit", "tools: [read, edit, command]")
		resume := make(chan struct{})
		b.model.Script(b.shellRun("touch begun; while ! test -e gate; do sleep 0.1; done"),
			fakemodel.Reply{Text: "The answer is 42.", Usage: fakemodel.DefaultUsage, Until: resume})
		id := strings.TrimSpace(b.must(b.mailboxd(b.work, "ask", b.program.name, "What is the answer?", "--in", b.work)).out)
		logs := b.follow(id)
		b.await("the call of the tool", func() bool { return b.has("begun") })
		if len(b.left()) == 0 {
			t.Error("no process of the program is found while it works")
		}
		b.killDaemon()
		b.write("work/gate", "")
		b.await("the answer", func() bool { return len(b.model.Requests()) >= 2 })
		b.killDaemon()
		close(resume)
		b.must(b.mailboxd(b.work, "wait", id, "--timeout", "80s"))
		if r := b.result(); r.Status != "ok" || r.Output.Summary != "The answer is 42." {
			t.Errorf("result = %+v; want the answer", r)
		}
		b.nothingLeft("the end of its run")
		if n := len(b.model.Requests()); n != 2 {
			t.Errorf("the model was asked %d times; want 2", n)
		}
		if printed := logs(); !strings.Contains(printed, "touch begun") || !strings.Contains(printed, "The answer is 42.") {
			t.Errorf("logs -f printed\n%s\nwant the call and the answer", printed)
		}
	})
}

// unending are replies after which a program works until it is ended: it reads an answer that stops
// in its middle, or waits for a command that sleeps.
func (b *box) unending() map[string]fakemodel.Reply {
	return map[string]fakemodel.Reply{
		"an answer": {Text: "a long answer", Hang: true},
		"a call":    b.shellRun("touch begun; sleep 1000"), // Codex goes on after 30 seconds, and calls it again
	}
}

// inUnending reports whether the program has come to the reply of that name, after so many requests.
func (b *box) inUnending(name string, requests int) bool {
	if name == "a call" {
		return b.has("begun")
	}
	return len(b.model.Requests()) > requests
}

// endsOnce fails the test unless nothing of the program is left, and its task has one result, which it returns.
func (b *box) endsOnce(id, how string) (r result) {
	b.t.Helper()
	b.nothingLeft(how)
	found, err := filepath.Glob(filepath.Join(b.home, ".local/state/ainl_agents/results", id+"*"))
	if err != nil || len(found) != 1 {
		b.t.Fatalf("after %s, the results are %q, %v; want one", how, found, err)
	}
	text, err := os.ReadFile(found[0])
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

func TestNothingOfAProgramIsLeftAfterACancelInAnAnswerAndInACall(t *testing.T) {
	forEach(t, func(t *testing.T, b *box) {
		b.plain()
		b.serve()
		b.entry("permission: edit", "tools: [read, edit, command]")
		for name, reply := range b.unending() {
			asked := len(b.model.Requests())
			b.model.Script(reply)
			id := strings.TrimSpace(b.must(b.mailboxd(b.work, "ask", b.program.name, "Answer at length.", "--in", b.work)).out)
			b.await(name, func() bool { return b.inUnending(name, asked) })
			b.must(b.mailboxd(b.work, "cancel", id))
			b.mailboxd(b.work, "wait", id, "--timeout", "80s") // its exit code is that of the result
			if r := b.endsOnce(id, "a cancel in "+name); r.Status != "cancelled" {
				t.Errorf("a run that is cancelled in %s ends as %+v; want cancelled", name, r)
			}
		}
	})
}

func TestNothingOfAProgramIsLeftAfterADeadlineInAnAnswerAndInACall(t *testing.T) {
	forEach(t, func(t *testing.T, b *box) {
		b.plain()
		b.serve()
		b.entry("permission: edit", "tools: [read, edit, command]")
		for name, reply := range b.unending() {
			asked := len(b.model.Requests())
			b.model.Script(reply)
			r := b.ask("Answer at length.", "--in", b.work, "--deadline", "30s")
			if !b.inUnending(name, asked) {
				t.Logf("the program was too slow to come to %s before its deadline", name)
			}
			if r = b.endsOnce(r.ID, "a deadline in "+name); r.Error.Kind != "deadline_exceeded" {
				t.Errorf("a run that is late in %s ends as %+v; want deadline_exceeded", name, r)
			}
		}
	})
}

// Codex waits for a network without an end.
func TestARunOfCodexWithoutAProviderEndsForLackOfProgress(t *testing.T) {
	needPrograms(t)
	t.Parallel()
	for _, p := range all {
		if p.name != "codex" {
			continue
		}
		b := newBox(t, p)
		b.plain()
		b.serve()
		b.entry("permission: read_only", "idle_timeout: 20s")
		b.model.Close()
		r := b.ask("What is the answer?")
		const want = "the model made no progress for 20s and the run was ended; at the end, the provider can't be reached; it tries again"
		if r.Error.Kind != "idle_timeout" || r.Error.Message != want {
			t.Errorf("the run ends as %+v; want idle_timeout: %s", r.Error, want)
		}
		b.nothingLeft("a run without progress")
		screen := b.screen("logs", r.ID)
		if !strings.HasSuffix(screen, "  the provider can't be reached; it tries again\n") || strings.Contains(screen, "failed") {
			t.Errorf("logs shows\n%s\nwant that it tries again, and no failure", screen)
		}
	}
}
