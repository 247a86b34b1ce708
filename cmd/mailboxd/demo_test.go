package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/reader"
	"mailboxd/internal/cli/term"
)

func TestTheDemoDoesNotSayThatTheTaskIsHeldWhenItCannotReadIt(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int32
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) > 1 { // the first is the greeting
			w.WriteHeader(http.StatusInternalServerError)
			io.WriteString(w, `{"error":{"kind":"internal","message":"the ledger is unreadable"}}`)
			return
		}
		io.WriteString(w, "{}")
	})}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) })
	defer serving.Wait()
	defer server.Close()
	var out bytes.Buffer
	at := reader.Location{Root: t.TempDir(), StateDir: t.TempDir(), Socket: socket}
	err = approveDemo(t.Context(), term.Screen{Writer: &out}, at)
	if said, ok := errors.AsType[*client.Error](err); !ok || said.Message != "the ledger is unreadable" || out.Len() > 0 {
		t.Errorf("approveDemo = %v, with %q; want the error of the daemon and no words", err, out.String())
	}
}

func TestTheDemoDoesNotSayThatTheTaskIsHeldWhenItIsStopped(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	var out bytes.Buffer
	at := reader.Location{Root: t.TempDir(), StateDir: t.TempDir()}
	if err := approveDemo(ctx, term.Screen{Writer: &out}, at); !errors.Is(err, context.Canceled) || out.Len() > 0 {
		t.Errorf("approveDemo = %v, with %q; want that it was cancelled, and no words", err, out.String())
	}
}

func TestTheDemoEndsWithCommandsThatWork(t *testing.T) {
	bin := t.TempDir()
	t.Setenv("GOBIN", bin)
	t.Chdir("../..") // where README's "go run" works
	for _, c := range []struct{ name, program, path, want string }{
		{"by its name", "mailboxd", "", "  mailboxd init"},
		{"by its path", "./mailboxd", "", "  ./mailboxd init"},
		{"by go run", "/tmp/go-build1/b001/exe/mailboxd", "", "  " + bin + "/mailboxd init"},
		{"by go run, with the directory of go install in PATH", "/tmp/go-build1/b001/exe/mailboxd", ":" + bin, "  mailboxd init"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("PATH", os.Getenv("PATH")+c.path)
			var out bytes.Buffer
			if err := nextSteps(t.Context(), c.program).Print(term.Screen{Writer: &out}); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(out.String(), c.want+"  ") {
				t.Errorf("the demo ends with\n%s; want a line with %q", out.String(), c.want)
			}
			if installs := strings.Contains(out.String(), goInstall); installs != strings.Contains(c.program, "go-build") {
				t.Errorf("the demo ends with\n%s; it installs: %t", out.String(), installs)
			}
		})
	}
}
