package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"testing"

	"go.uber.org/goleak"

	"mailboxd/internal/ledger"
)

// cast are the parts the test binary plays as a process of its own.
var cast = map[string]func(l *ledger.Ledger) error{
	"writer":    writeForever,
	"full disk": writeOnAFullDisk,
	"one more": func(l *ledger.Ledger) error {
		_, err := l.Events(context.Background(), "", 0, 1) // so the index has all
		return errors.Join(err, writeOne(l, 1000), l.Close())
	},
	"importer": func(l *ledger.Ledger) error { return l.Close() },
}

func TestMain(m *testing.M) {
	if part := cast[os.Getenv("LEDGER_TEST_PART")]; part != nil {
		if n, err := strconv.ParseInt(os.Getenv("LEDGER_TEST_KILL"), 10, 64); err == nil {
			killAtWrite(n)
		}
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

// writeOnAFullDisk adds tasks until there is no room for more, and prints how many a reader
// finds then.
func writeOnAFullDisk(l *ledger.Ledger) error {
	n := 1
	for writeOne(l, n) == nil {
		n++
	}
	tasks, err := l.Tasks(context.Background(), ledger.Filter{})
	if err == nil {
		fmt.Println(n-1, len(tasks))
	}
	return err
}

func writeOne(l *ledger.Ledger, n int) error {
	return l.Update(context.Background(), func(tx *ledger.Tx) error {
		tx.SetFile(ledger.File{Path: "tasks/a.jsonl", Offset: int64(n)})
		return accept(tx, newTask(n), fmt.Appendf(nil, "line %d%4096s", n, ""))
	})
}
