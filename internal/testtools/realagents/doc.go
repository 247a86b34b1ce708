// Package realagents tries mailboxd with the agent programs that people have, at the versions
// in testdata/package.json, against a fake model server. .ci/agents installs the programs. Its
// tests run in a network of their own, which has nothing but the loopback device.
package realagents
