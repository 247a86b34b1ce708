package main

import "testing"

func TestADirectoryHasOneHubThatServes(t *testing.T) {
	h := makeHub(t)
	h.serve("127.0.0.1:0")
	h.run("is served already; end the other mailboxd-hub", "serve", "--listen", "127.0.0.1:0", "--until-input-ends")
}
