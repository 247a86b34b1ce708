package main

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"mailboxd/internal/decisions/sign"
)

// signerKey is the key with a kid: its seed is the kid, again and again. Scripts have the public keys.
func signerKey(kid string) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte(kid), ed25519.SeedSize)[:ed25519.SeedSize])
}

// sendSigned appends a request in Clutch from ui, signed with the key of a kid: signed ID KID [MEMBERS [FROM TO]]. MEMBERS
// come at its end, and FROM in the signed line becomes TO, so that the signature is of another content. The kid none signs
// nothing.
func sendSigned(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || len(args) > 5 || len(args) == 4 {
		ts.Fatalf("usage: signed id kid [members [from to]]")
	}
	members := ""
	if len(args) > 2 {
		members = args[2]
	}
	auth := fmt.Sprintf(`,"security":{"auth":{"scheme":"ed25519","kid":%q,"sig":""}}`, args[1])
	if args[1] == "none" {
		auth = ""
	}
	line := fmt.Sprintf(`{"v":"clutch/0.1","id":"msg_%[1]s","ts":"2026-02-01T13:20:11.123Z","thread_id":"thr_1","run_id":"run_1",`+
		`"task_id":"%[1]s","from":{"agent_id":"agent:ui"},"to":[{"agent_id":"agent:worker"}],"type":"task.request",`+
		`"payload":{"title":"work"}%[2]s%[3]s}`, args[0], members, auth)
	if auth != "" {
		text, err := sign.Text([]byte(line))
		ts.Check(err)
		signature := base64.RawURLEncoding.EncodeToString(ed25519.Sign(signerKey(args[1]), text))
		line = strings.Replace(line, `"sig":""`, fmt.Sprintf(`"sig":%q`, signature), 1)
	}
	if len(args) == 5 {
		before := line
		if line = strings.Replace(line, args[3], args[4], 1); line == before {
			ts.Fatalf("%s is not in %s", args[3], line)
		}
	}
	appendTo(ts, "box/tasks/ui.jsonl", line+"\n")
}
