package bundle

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/seal"
)

// mostMemory is what a process that only verifies may have, in KiB: mailboxd has 16 MiB more from its beginning.
const mostMemory = 48 << 10

// verifiesFile is set in a process that verifies the file with this path, and prints the most memory that it had.
const verifiesFile = "BUNDLE_TEST_VERIFIES"

func TestMain(m *testing.M) {
	path := os.Getenv(verifiesFile)
	if path == "" {
		os.Exit(m.Run())
	}
	debug.SetMemoryLimit(Memory)
	file, err := os.Open(path)
	if err != nil {
		panic(err)
	}
	info, err := file.Stat()
	if err != nil {
		panic(err)
	}
	_, err = Verify(context.Background(), file, info.Size(), Trust{Keys: keysOf(1)})
	fmt.Fprintln(os.Stderr, err)
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		panic(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	fmt.Println(strings.Fields(rest)[0])
}

// greedy are files that are made to need much memory.
func greedy(t *testing.T) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	add := func(name string, change func(*made)) {
		m := newMade(t)
		change(m)
		all[name] = m.write(t)
	}
	dense := func(element string, size int) string {
		return strings.Repeat(element+",", size/(len(element)+1)-1) + element
	}
	// as returns a bundle whose file has another text.
	as := func(name, text string) []byte {
		m := newMade(t)
		m.replace = map[string]string{name: text}
		return m.write(t)
	}
	all["a list of tasks"] = as(manifestName, `{"format":1,"tasks":[`+dense("{}", maxManifest-100)+`]}`)
	all["a list of files"] = as(manifestName, `{"format":1,"files":[`+dense("{}", maxManifest-100)+`]}`)
	all["a list of words"] = as(manifestName, `{"format":1,"redacted":[`+dense(`""`, maxManifest-100)+`]}`)
	all["a large manifest"] = as(manifestName, strings.Repeat(" ", maxEntry))
	all["a list of signatures"] = as(statementName, `{"signatures":[`+dense("{}", maxManifest)+`]}`)
	add("keys", func(m *made) {
		m.bodies[keysName], m.keys = strings.Repeat(`{"key":"a"}`+"\n", maxEntry/12), nil
	})
	add("many tasks and files", func(m *made) {
		for i := range maxEntries - 20 {
			m.manifest.Tasks = append(m.manifest.Tasks, Task{envelope.ID(fmt.Sprintf("%080d", i)), 1, "ken", "ann", task.Done, envelope.OK})
			m.bodies[base("requests", i+3)+".json"] = "{}"
		}
	})
	add("many approvals", func(m *made) {
		a := m.approvals[0]
		a.Plan, a.Note = "", strings.Repeat("n", 4000)
		a.Decider, m.approvals = strings.Repeat("a", maxWords-150), nil
		for range maxApprovals {
			m.approvals = append(m.approvals, a)
		}
	})
	add("many seals", func(m *made) {
		m.seals = nil
		for i := range int64(150_000) {
			m.seals = append(m.seals, seal.Seal{First: i*2 + 1, Last: i*2 + 2, Key: "unknown"})
		}
	})
	add("many keys of seals", func(m *made) {
		m.seals = nil
		for i := range int64(100_000) {
			m.seals = append(m.seals, seal.Seal{First: i*2 + 1, Last: i*2 + 2, Key: fmt.Sprint(i)})
		}
	})
	add("long events", func(m *made) {
		for len(m.events) < 60 {
			m.event("t1", task.KindTaskProgress, `{"result_sha256":"%s"}`, strings.Repeat("x", maxLine-300))
		}
	})
	add("many digests", func(m *made) {
		for len(m.events) < 150_000 {
			m.event("t1", task.KindTaskFinished, `{"result_sha256":"%064d","patch_sha256":"%064d"}`, len(m.events), len(m.events))
		}
	})
	return all
}

// plainProgram returns a test program that has no race detector, which needs memory of its own.
func plainProgram(t *testing.T) string {
	t.Helper()
	info, ok := debug.ReadBuildInfo()
	if !ok || !slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		return os.Args[0]
	}
	program := filepath.Join(t.TempDir(), "bundle.test")
	if out, err := exec.Command("go", "test", "-c", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("build the test without the race detector: %v\n%s", err, out)
	}
	return program
}

func TestNoFileNeedsMuchMemoryToBeVerified(t *testing.T) {
	dir, all, program := t.TempDir(), greedy(t), plainProgram(t)
	for name, f := range hostile(t) {
		all[name] = f.text
	}
	path := filepath.Join(dir, "file")
	for name, text := range all {
		try(t, os.WriteFile(path, text, 0o600))
		child := exec.Command(program)
		child.Dir, child.Env = dir, append(os.Environ(), verifiesFile+"="+path, "GOGC=", "GOMEMLIMIT=")
		var said bytes.Buffer
		child.Stderr = &said
		text, err := child.Output()
		var most int
		if _, scanErr := fmt.Sscan(string(text), &most); err != nil || scanErr != nil {
			t.Fatalf("%s: the process ended with %v, %v: %s", name, err, scanErr, said.String())
		}
		if t.Logf("%s: %d KiB: %.200s", name, most, said.String()); most > mostMemory {
			t.Errorf("%s: verifying needed %d KiB; want at most %d", name, most, mostMemory)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("verifying left %v, %v", left, err)
	}
}
