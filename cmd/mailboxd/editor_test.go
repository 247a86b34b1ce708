package main

import (
	"context"
	"fmt"
	"os"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
	"mailboxd/internal/operating/config"
)

// editor answers tasks at the socket as an editor does, for an agent that is not
// run: editor claim AGENT; editor submit ID AGENT CLAIMED RESULT, where CLAIMED
// is a file with what claim has printed, or none. It exits with 1, and the kind
// of the error, when it is refused.
func editor() {
	answer, err := edit(context.Background(), os.Args[1:])
	if said := (*client.Error)(nil); err != nil {
		said, _ = err.(*client.Error)
		fmt.Fprintln(os.Stderr, said.Kind, said.Message)
		os.Exit(1)
	}
	text, err := json.Marshal(answer)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(text))
}

func edit(ctx context.Context, args []string) (any, error) {
	cfg, err := config.Load("", "")
	if err != nil {
		panic(err)
	}
	r, err := locationOf(cfg).Open(ctx)
	if err != nil {
		panic(err)
	}
	defer r.Close()
	daemon := r.Client
	if args[0] == "claim" {
		return daemon.Claim(ctx, client.Claim{Agent: args[1]})
	}
	request := client.Submission{Agent: args[2], Lease: leaseIn(args[3]), Result: jsontext.Value(args[4])}
	return daemon.Submit(ctx, envelope.ID(args[1]), request)
}

func leaseIn(file string) string {
	if file == "none" {
		return ""
	}
	text, err := os.ReadFile(file)
	var claimed client.Claimed
	if err == nil {
		err = json.Unmarshal(text, &claimed)
	}
	if err != nil {
		panic(err)
	}
	return claimed.Lease
}
