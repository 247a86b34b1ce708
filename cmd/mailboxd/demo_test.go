package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"mailboxd/internal/client"
	"mailboxd/internal/reader"
	"mailboxd/internal/term"
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
