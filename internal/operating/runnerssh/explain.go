package runnerssh

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"
)

// A cause is a failure that is known by what ssh writes.
type cause struct {
	sign   string
	reason string
	next   string // %s is the destination
}

// causes are the known ones; the first that fits counts.
var causes = []cause{
	{"REMOTE HOST IDENTIFICATION HAS CHANGED", "wrong host key: the machine has another one than before",
		"find out why; if the new key is right, remove the old one with ssh-keygen -R, and connect once by hand: ssh %s"},
	{"Host key verification failed", "wrong host key: it isn't known here", "compare the key and accept it by hand: ssh %s"},
	{"Permission denied", "wrong key: the machine doesn't let this user in",
		"add the public key to ~/.ssh/authorized_keys there, and try: ssh -o BatchMode=yes %s true"},
	{"Could not resolve hostname", "the host is not known", "correct runners in the configuration or ~/.ssh/config, and try: ssh %s"},
	{"port forwarding failed", "the machine doesn't forward a port",
		"allow it there: AllowTcpForwarding remote, or yes, in sshd_config of %s"},
	{"administratively prohibited", "the machine doesn't forward a port",
		"allow it there: AllowTcpForwarding remote, or yes, in sshd_config of %s"},
	{`unknown command "runner"`, "mailboxd there is older than runners", "install there the version of this machine: %s"},
	{"mailboxd: not found", "mailboxd is not installed there, or not on PATH", "install it: %s"},
	{"mailboxd: command not found", "mailboxd is not installed there, or not on PATH", "install it: %s"},
	{"Connection refused", "no sshd answers", "start the machine or its sshd, and try: ssh %s"},
	{"Connection timed out", "the machine doesn't answer", "look at the machine and the network, and try: ssh %s"},
	{"No route to host", "the machine can't be reached", "look at the machine and the network, and try: ssh %s"},
	{"Network is unreachable", "the machine can't be reached", "look at the machine and the network, and try: ssh %s"},
}

// explain says why a connection ended, and what to do.
func explain(r Runner, err error) Failure {
	ended, ok := errors.AsType[*exitError](err)
	if !ok {
		return Failure{Reason: err.Error(), Next: "look at the log of the daemon"}
	}
	for _, c := range causes {
		if strings.Contains(ended.stderr, c.sign) {
			return Failure{Reason: c.reason, Next: fmt.Sprintf(c.next, r.Destination)}
		}
	}
	status, _ := errors.AsType[*exec.ExitError](ended.err)
	switch {
	case status != nil && status.ExitCode() == 127:
		return Failure{Reason: "mailboxd is not installed there, or not on PATH", Next: "install it: " + r.Destination}
	case status != nil && status.ExitCode() == 255:
		return Failure{Reason: "ssh: " + ended.Error(), Next: "try by hand: ssh -o BatchMode=yes " + r.Destination + " true"}
	}
	return Failure{Reason: "mailboxd runner there: " + ended.Error(), Next: "correct that on " + r.Destination}
}
