package a2acli_test

import (
	"bufio"
	"os/exec"
	"strings"
	"testing"

	"mailboxd/internal/testtools/a2acli"
)

func TestTheProgramServesAndSends(t *testing.T) {
	program, err := a2acli.Build()
	if err != nil {
		t.Skipf("the program a2a is missing: its modules are neither in the module cache nor at a proxy (.ci/run has them): %v", err)
	}
	serve := exec.Command(program, "serve", "--echo", "--port", "0")
	log, err := serve.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := serve.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = serve.Process.Kill()
		_ = serve.Wait() // it was killed
	})
	first, err := bufio.NewReader(log).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	at, found := strings.CutPrefix(strings.TrimSpace(first), "Listening on ")
	if !found {
		t.Fatalf("the server printed %q; want its address", first)
	}
	out, err := exec.Command(program, "send", "http://"+at, "hello").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "completed") || !strings.Contains(string(out), "] hello") {
		t.Errorf("send printed %s, %v; want a completed task with its text", out, err)
	}
}
