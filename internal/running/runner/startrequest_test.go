package runner

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"mailboxd/internal/sandboxing/cgroup"
)

func TestAnOrderSaysAllOfASpec(t *testing.T) {
	full := Spec{
		Dir: "/a dir", Argv: []string{"a", "", "c\nd"}, Env: []string{"K=V\xff", ""}, Cwd: "/cwd", Stdin: "/in",
		Timeout: time.Hour, IdleTimeout: 1, Progress: "/progress", ExitTimeout: 2, Answer: "/answer", Lease: "/lease",
		Deadline: time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC), MaxOutput: 1 << 40, Grace: 3, Recorded: true, CwdResolved: true, path: "/bin/a",
		Sandbox: Sandbox{Program: "/usr/bin/bwrap", Options: []string{"--ro-bind", "/usr", ""}, ByName: true, Network: []string{"example.com"}, Limits: cgroup.Limits{Memory: 1 << 40, Processes: 512}},
		Broker:  `{"token":"t"}`, Setup: Setup{Argv: []string{"npm", "ci"}, Options: []string{"--tmpfs"}, Network: []string{"registry.example"}, path: "/bin/npm"},
	}
	for v, i := reflect.ValueOf(full), 0; i < v.NumField(); i++ {
		name := v.Type().Field(i).Name
		if ofTheKeeper := slices.Contains([]string{"step", "stdout", "toolsURL"}, name); v.Field(i).IsZero() && !ofTheKeeper {
			t.Errorf("%s is not tried", name)
		}
	}
	least := Spec{Dir: "/", Argv: []string{"a"}, Env: []string{}}
	for _, s := range []Spec{full, least} {
		for _, known := range [][]string{{}, {"/one", "/two"}} {
			got, gotKnown := decodeStart(encodeStart(s, known))
			if !reflect.DeepEqual(got, s) || !reflect.DeepEqual(gotKnown, known) {
				t.Errorf("an order for %+v with %q says %+v with %q", s, known, got, gotKnown)
			}
		}
	}
}

func FuzzAnOrderThatMakesNoSenseStartsNothing(f *testing.F) {
	whole := encodeStart(Spec{Dir: "/d", Argv: []string{"a", "b"}, Env: []string{"K=V"}}, []string{"/known"})
	for n := range whole {
		f.Add(whole[:n])
	}
	f.Add([]byte("\x00\x00\x00\x00\x00\x000\x000\x000\x000\x000\x000\x00true\x009223372036854775807\x00"))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, known := decodeStart(text)
		again, knownAgain := decodeStart(encodeStart(s, known))
		if len(s.Argv) > 0 && (!reflect.DeepEqual(again.Argv, s.Argv) || len(knownAgain) != len(known)) {
			t.Errorf("%q is taken for %+v, and that for %+v", text, s, again)
		}
	})
}
