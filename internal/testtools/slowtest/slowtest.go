// Package slowtest leaves slow tests out where they were not asked for. There are three sizes:
//
//	go test -short ./...        what takes moments
//	go test ./...               all behaviour of the program
//	SLOW_TESTS=1 go test ./...  everything: also comparisons of builds, long runs under load, and
//	                            the slow tests with browsers and other programs
//
// .ci/run runs the second with -race, and then the slow tests without it.
//
// A script of cmd/mailboxd has the condition [short] for the first.
package slowtest

import (
	"os"
	"testing"
)

// Variable is the environment variable that asks for slow tests with the value 1.
const Variable = "SLOW_TESTS"

// Enabled reports whether slow tests were asked for. With -short they are not. It reads the
// environment at each call, so that the cache of go test knows that a test depends on it.
func Enabled() bool { return os.Getenv(Variable) == "1" && !testing.Short() }

// Times returns how often a test repeats what it tries: all times where slow tests were asked for, and a
// fifth of them elsewhere.
func Times(all int) int {
	if Enabled() {
		return all
	}
	return max(all/5, 1)
}

// Require skips a test unless slow tests were asked for. why says what is slow about it, as a
// sentence without its end.
func Require(t testing.TB, why string) {
	t.Helper()
	if !Enabled() {
		t.Skipf("%s; %s=1 runs it", why, Variable)
	}
}

// SkipShort skips a test with -short. why says what takes its time, as a sentence without its end.
func SkipShort(t testing.TB, why string) {
	t.Helper()
	if testing.Short() {
		t.Skipf("%s; without -short it runs", why)
	}
}
