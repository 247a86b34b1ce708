package torture_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/running/host"
	"mailboxd/internal/stores/ledger"
	"mailboxd/internal/testtools/programs"
)

// sandboxedCast are agents in a sandbox, one of them with a gate.
var sandboxedCast = []bind{
	{part: "boxed", concurrency: 3, sandboxed: true},
	{part: "gated", concurrency: 2, sandboxed: true},
}

// castOf returns the agents of a site: some in a sandbox, where the machine can make one.
func castOf() []bind {
	if _, err := host.FindBubblewrap(); err != nil {
		return cast
	}
	return append(cast[:len(cast):len(cast)], sandboxedCast...)
}

func isSandboxed(part string) bool {
	return slices.ContainsFunc(sandboxedCast, func(b bind) bool { return b.part == part })
}

// sandbox returns the sandbox of an agent as configuration.
func (s *site) sandbox(b bind) string {
	network := ""
	if b.part == "gated" {
		network = s.gateHost()
	}
	return fmt.Sprintf("sandbox: {write: [%s], network: [%s], tasks: %t}, ", s.path("diary"), network, b.part == "boxed")
}

// gateHost is a name that is only on the command lines of this site's gates.
func (s *site) gateHost() string { return filepath.Base(s.dir) + ".example.com" }

// inSandbox is an agent in a sandbox. At times it asks for a task, or leaves a process in a
// session of its own, or a directory.
func inSandbox(diary string, request received) {
	time.Sleep(rand.N(300 * time.Millisecond))
	if file := os.Getenv("MAILBOX_SUBMIT_FILE"); file != "" && rand.N(2) == 0 {
		askForTask(diary, file, request)
	}
	if rand.N(3) == 0 {
		child := exec.Command(os.Args[0], "agent", "child")
		child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := child.Start(); err != nil {
			panic(err)
		}
	}
	if dir, err := os.MkdirTemp("", "left-"); err != nil || !strings.HasPrefix(dir, "/tmp/left-") {
		panic(fmt.Sprintf("make a directory in the sandbox: %s, %v", dir, err))
	}
	if err := os.Mkdir("in-the-project", 0o700); err == nil {
		_ = os.Remove("in-the-project")
	}
}

// askForTask appends a task line to the file of its run, and then signs that it did.
func askForTask(diary, file string, request received) {
	var child received
	child.ID = fmt.Sprintf("%s.%d.%s", request.ID, request.Input.Payload.Version, os.Getenv("MAILBOX_ATTEMPT"))
	child.Input.Payload.Version = 1
	out, err := os.OpenFile(file, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		panic(err)
	}
	defer out.Close()
	if _, err := out.WriteString(strings.Replace(envelopeOf(promise{id: child.ID, part: "fast", version: 1}), `"torture"`, `"boxed"`, 1) + "\n"); err != nil {
		panic(err)
	}
	sign(diary, "asked", child)
}

// checkAsked looks for the tasks that runs asked for: each has its result, and is below the task
// of its run.
func (s *site) checkAsked(t *testing.T, runs map[key]execution) {
	t.Helper()
	if s.damage != nil {
		return // without the ledger, nobody knows whose the lines are
	}
	books, err := ledger.OpenReader(s.path("state/ledger.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer books.Close()
	asked := 0
	for k, e := range runs {
		if !e.asked {
			continue
		}
		asked++
		rows, err := books.Revisions(t.Context(), envelope.ID(k.id))
		if err != nil || len(rows) != 1 {
			t.Errorf("%s, which a run asked for, has %d revisions, %v; want one", k.id, len(rows), err)
			continue
		}
		parent, err := books.Task(t.Context(), rows[0].Parent)
		if err != nil || !strings.HasPrefix(k.id, string(parent.ID)+".") || rows[0].Requester != "boxed" {
			t.Errorf("%s is of %s below %q, %v; want it of boxed below the task of its run", k.id, rows[0].Requester, parent.ID, err)
		}
		if r, err := s.read(k.id); err != nil || r.Status != envelope.OK && r.Error.Kind != envelope.RunLost {
			t.Errorf("%s, which a run asked for, has the result %s %s, %v; want ok", k.id, r.Status, r.Error.Kind, err)
		}
	}
	t.Logf("%d tasks were asked for in sandboxes", asked)
}

// killSandboxes kills bubblewrap and gates at random instants, until ctx ends.
func (s *site) killSandboxes(ctx context.Context, b *book) error {
	dice := chance(1 << 35)
	for {
		pause := time.NewTimer(time.Duration(20+dice.IntN(200)) * time.Millisecond)
		select {
		case <-ctx.Done():
			pause.Stop()
			return nil
		case <-pause.C:
		}
		wraps, gates := s.sandboxes()
		switch {
		case len(gates) > 0 && dice.IntN(2) == 0:
			programs.Kill(gates[:1])
			b.sandboxKilled("", 0, 1)
		case len(wraps) > 0:
			pid := wraps[dice.IntN(len(wraps))]
			if id := s.idOf(pid); id != "" {
				b.sandboxKilled(id, 1, 0)
				programs.Kill([]int{pid})
			}
		}
	}
}

// sandboxes lists the processes of bubblewrap and of gates of this site.
func (s *site) sandboxes() (wraps, gates []int) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		var pid int
		fmt.Sscan(filepath.Base(dir), &pid)
		command, _ := os.ReadFile(dir + "/cmdline")
		words := strings.Split(string(command), "\x00")
		switch {
		case words[0] == "bwrap" && s.idOf(pid) != "":
			wraps = append(wraps, pid)
		case len(words) > 2 && words[0] == "mailboxd" && words[1] == "gate" && words[2] == s.gateHost():
			gates = append(gates, pid)
		}
	}
	return wraps, gates
}

// idOf returns the id of the task whose run a process belongs to; "" for another process.
func (s *site) idOf(pid int) string {
	environ, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	for entry := range bytes.SplitSeq(environ, []byte{0}) {
		if dir, ok := strings.CutPrefix(string(entry), "MAILBOX_RUN_DIR="+s.path("state/runs")+"/"); ok {
			return filepath.Dir(dir)
		}
	}
	return ""
}

// checkSandboxes looks for what sandboxes have left: processes, mounts, and files in the
// project or for temporary ones.
func (s *site) checkSandboxes(t *testing.T) {
	t.Helper()
	wraps, gates := s.sandboxes()
	for _, pid := range append(wraps, gates...) {
		if !s.damage.orphaned(pid) {
			t.Errorf("a process of a sandbox is left: %s", describe(pid))
		}
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(mounts, []byte(s.dir)) {
		t.Errorf("a mount is left:\n%s", mounts)
	}
	for _, name := range []string{"project", "tmp"} {
		entries, err := os.ReadDir(s.path(name))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if e.Name() != "in-the-project" { // its agent was killed in between
				t.Errorf("%s/%s is left", name, e.Name())
			}
		}
	}
}
