//go:build linux

// Package linux exists on Linux only. A build for another system ends with its path,
// "mailboxd-needs-linux", instead of errors from system calls that do not exist there.
package linux
