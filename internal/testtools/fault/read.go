package fault

import "sync/atomic"

var failing atomic.Pointer[func(read string) error]

// Read returns the error with which a test has the read, or write, of that name
// fail, and nil everywhere else. It is safe for concurrent use.
func Read(name string) error {
	if fail := failing.Load(); fail != nil {
		return (*fail)(name)
	}
	return nil
}

// FailReads has Read return what fail does, until undo is called. It is for
// tests, of which one at a time may use it.
func FailReads(fail func(read string) error) (undo func()) {
	failing.Store(&fail)
	return func() { failing.Store(nil) }
}
