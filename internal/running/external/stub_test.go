package external

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"mailboxd/internal/decisions/task"
)

// Variables of this test binary as a host: the service as JSON, and the step after which it dies.
const (
	serviceVariable = "EXTERNAL_TEST_SERVICE"
	killVariable    = "EXTERNAL_TEST_KILL"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == serveWord {
		serveStub()
		os.Exit(0)
	}
	if text, ok := os.LookupEnv(serviceVariable); ok {
		at := os.Getenv(killVariable)
		point = func(name string) {
			if name == at {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {}
			}
		}
		if err := Main([]string{text}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

const request = `{"task_id":"t1","description":"a task"}`

// A service is a stub that counts what it is asked.
type service struct {
	*httptest.Server
	mu    sync.Mutex // guards what follows
	keys  []string   // of the posts, in their order
	gets  int
	wrong []string // what was wrong with a request
}

// newService starts a stub that answers a post, and the questions for the answer, by two functions.
func newService(t *testing.T, post, get http.HandlerFunc) *service {
	t.Helper()
	s := &service{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		if r.Method == http.MethodPost {
			s.keys = append(s.keys, r.Header.Get("Idempotency-Key"))
			if string(body) != request {
				s.wrong = append(s.wrong, "body "+string(body))
			}
		} else {
			s.gets++
		}
		s.mu.Unlock()
		switch {
		case r.Method == http.MethodPost:
			post(w, r)
		case get != nil:
			get(w, r)
		}
	}))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
		for _, wrong := range s.wrong {
			t.Errorf("the service got a wrong %s", wrong)
		}
	})
	return s
}

func (s *service) posts() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.keys...)
}

// say answers with a status and a text.
func say(status int, text string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		fmt.Fprint(w, text)
	}
}

// newRun returns the directory of a run, three levels deep as in a state directory.
func newRun(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "runs", "t1", "1.1")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// run has a host of this process ask a service.
func run(t *testing.T, dir string, s task.Service, set ...func(*Options)) Result {
	t.Helper()
	var out bytes.Buffer
	o := Options{
		Service: s, Request: []byte(request), Dir: dir, RunID: "run-1",
		Stdout: &out, Stderr: io.Discard, Progress: filepath.Join(dir, "progress.jsonl"),
	}
	for _, change := range set {
		change(&o)
	}
	if err := Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	return resultOf(t, out.String())
}

func resultOf(t *testing.T, line string) (r Result) {
	t.Helper()
	if strings.Count(line, "\n") != 1 {
		t.Fatalf("the host printed %q; want one line", line)
	}
	if err := json.Unmarshal([]byte(line), &r); err != nil {
		t.Fatalf("the host printed %q: %v", line, err)
	}
	return r
}

// runProcess has a host in a process of its own ask a service, and die after a step. It returns what
// it printed, and whether it died.
func runProcess(t *testing.T, dir, id string, s task.Service, kill string) (string, bool) {
	t.Helper()
	return runWith(t, dir, id, s, kill, request)
}

// runRequest does the same with a request for a task that some words describe.
func runRequest(t *testing.T, dir, id string, s task.Service, kill, words string) (string, bool) {
	t.Helper()
	o := Options{}
	requesting(words)(&o)
	return runWith(t, dir, id, s, kill, string(o.Request))
}

func runWith(t *testing.T, dir, id string, s task.Service, kill, request string) (string, bool) {
	t.Helper()
	args, err := Arguments(s)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Stdin, cmd.Stderr = strings.NewReader(request), os.Stderr
	cmd.Env = append(os.Environ(), serviceVariable+"="+args[1], killVariable+"="+kill, "MAILBOX_RUN_DIR="+dir, "MAILBOX_RUN_ID="+id)
	out, err := cmd.Output()
	killed := cmd.ProcessState != nil && cmd.ProcessState.Sys().(syscall.WaitStatus).Signaled()
	if err != nil && !killed {
		t.Fatalf("host: %v", err)
	}
	return string(out), killed
}

func asked(url string, mode task.ServiceMode) task.Service {
	return task.Service{URL: url, Mode: mode, HeaderTimeout: task.Duration(20 * time.Second), IdleTimeout: task.Duration(20 * time.Second)}
}

// answer has a host of a new run ask a service.
func answer(t *testing.T, url string, mode task.ServiceMode, set ...func(*Options)) Result {
	t.Helper()
	return run(t, newRun(t), asked(url, mode), set...)
}
