package dispatch_test

import (
	"testing"

	"go.uber.org/goleak"

	"mailboxd/internal/testtools/slowtest"
)

func TestMain(m *testing.M) {
	slowtest.RunAtOnce(8) // they wait for the disk and for timers
	goleak.VerifyTestMain(m)
}
