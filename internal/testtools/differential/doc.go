// Package differential compares two builds of mailboxd. It has no code but its
// tests: the build of the newest commit of base.txt and the build of the working tree
// get the same task lines of all dialects, the same control commands, and the
// same kills, in mailboxes at the same path. Then everything that users and
// their programs see must be equal: exit codes and output of the commands,
// event kinds and their data, inbox lines, results, dead letters, callbacks.
//
//	go test ./internal/testtools/differential -scenarios=2000
//
// A difference is reported with the seed of its scenario. -scenarios=1 -seed=N
// runs that scenario alone.
package differential
