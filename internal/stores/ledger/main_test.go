package ledger_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"mailboxd/internal/stores/ledger"
)

// cast are the parts the test binary plays as a process of its own.
var cast = map[string]func(l *ledger.Ledger) error{
	"writer":    writeForever,
	"full disk": writeOnAFullDisk,
}

func TestMain(m *testing.M) {
	if part := cast[os.Getenv("LEDGER_TEST_PART")]; part != nil {
		l, _, err := ledger.Open(os.Getenv("LEDGER_TEST_PATH"))
		if err == nil {
			err = part(l)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0) // without closing: the next one has to do without that
	}
	goleak.VerifyTestMain(m)
}

// writeForever adds tasks and prints each one's number once it is durable.
func writeForever(l *ledger.Ledger) error {
	for n := 1; ; n++ {
		if err := writeOne(l, n); err != nil {
			return err
		}
		fmt.Println(n)
	}
}

// writeOnAFullDisk adds tasks until there is no room for more, then makes
// room, adds the one there was none for, and prints how many those are.
func writeOnAFullDisk(l *ledger.Ledger) error {
	var room unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &room); err != nil {
		return err
	}
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 300_000, Max: room.Max}); err != nil {
		return err
	}
	n := 1
	for failed := 0; failed < 2; { // there is no room
		if writeOne(l, n) != nil {
			failed++
		} else {
			n, failed = n+1, 0
		}
	}
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &room); err != nil {
		return err
	}
	if err := writeOne(l, n); err != nil {
		return err
	}
	fmt.Println(n)
	return nil
}

func writeOne(l *ledger.Ledger, n int) error {
	return l.Update(context.Background(), func(tx *ledger.Tx) error {
		tx.SetFile(ledger.File{Path: "tasks/a.jsonl", Offset: int64(n)})
		return accept(tx, newTask(n), fmt.Appendf(nil, "line %d", n))
	})
}
