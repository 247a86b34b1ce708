package reader_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"testing"

	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/reader"
	"mailboxd/internal/testtools/slowtest"
)

// watch calls Watch with a look that returns one error after another, and then ends it. It
// returns how many looks there were.
func watch(t *testing.T, cancelAtError bool, errs ...error) (looks int, err error) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	l := reader.Location{Root: t.TempDir(), StateDir: filepath.Join(t.TempDir(), "state")}
	err = l.Watch(ctx, func(context.Context, *reader.Reader) error {
		looks++
		if cancelAtError || looks > len(errs) {
			cancel()
		}
		if looks <= len(errs) {
			return errs[looks-1]
		}
		return nil
	})
	return looks, err
}

func TestAWatchGoesOnWhenTheDaemonLeavesDuringALook(t *testing.T) {
	slowtest.SkipShort(t, "it waits for seconds")
	for _, gone := range []error{
		fmt.Errorf("%w: %w", client.ErrDown, io.EOF),
		&client.Error{Kind: client.Stopping, Message: "the daemon is stopping"},
	} {
		if looks, err := watch(t, false, nil, gone); looks != 3 || err != nil {
			t.Errorf("after a look without a daemon: %d looks, %v; want 3 and no error", looks, err)
		}
	}
}

func TestAWatchThatIsToldToEndDoesNotMissTheDaemon(t *testing.T) {
	for _, gone := range []error{
		fmt.Errorf("%w: %w", client.ErrDown, io.ErrUnexpectedEOF),
		&client.Error{Kind: client.Stopping, Message: "the daemon is stopping"},
		context.Canceled,
	} {
		if looks, err := watch(t, true, gone); looks != 1 || err != nil {
			t.Errorf("%d looks, %v; want one and no error", looks, err)
		}
	}
}

func TestAWatchReturnsTheErrorOfALookThatEndsIt(t *testing.T) {
	broken := errors.New("the ledger is unreadable")
	if looks, err := watch(t, true, broken); looks != 1 || !errors.Is(err, broken) {
		t.Errorf("%d looks, %v; want one and its error", looks, err)
	}
}

func TestAWatchEndsWithAnyOtherError(t *testing.T) {
	broken := errors.New("the ledger is unreadable")
	if looks, err := watch(t, false, nil, broken); looks != 2 || !errors.Is(err, broken) {
		t.Errorf("%d looks, %v; want 2 and the error of the second", looks, err)
	}
	if looks, err := watch(t, false, client.ErrDown); looks != 1 || !errors.Is(err, client.ErrDown) {
		t.Errorf("%d looks, %v; want one and an error when no daemon is there from the start", looks, err)
	}
}

func TestADaemonThatLeavesWithinAnAnswerIsDown(t *testing.T) {
	path := client.SocketPath{Dir: t.TempDir(), Name: "s"}
	listener, err := net.Listen("unix", filepath.Join(path.Dir, path.Name))
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked++; asked == 1 { // the greeting
			io.WriteString(w, "{}")
			return
		}
		w.Header().Set("Content-Length", "100")
		io.WriteString(w, `{"task`)
	})}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) })
	defer serving.Wait()
	defer server.Close()
	c, err := client.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Latest(t.Context(), "t1"); !errors.Is(err, client.ErrDown) {
		t.Errorf("Latest() = %v; want ErrDown", err)
	}
}
