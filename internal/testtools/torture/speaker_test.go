package torture_test

import (
	"bytes"
	"fmt"

	"github.com/go-json-experiment/json"
)

// An asked is what an agent that speaks CLowl needs of its request.
type asked struct {
	MID  string `json:"mid"`
	Body struct {
		D struct {
			Version int `json:"version"`
		} `json:"d"`
	} `json:"body"`
}

// speak is an agent that has another one help it, and answers when that has ended:
// it is run twice, for a run ends when it has nothing more to say.
func speak(diary string, conversation []byte) {
	lines := bytes.Split(bytes.TrimSpace(conversation), []byte("\n"))
	var said asked
	if err := json.Unmarshal(lines[0], &said); err != nil {
		panic(err)
	}
	request := received{ID: said.MID}
	request.Input.Payload.Version = said.Body.D.Version
	sign(diary, "began", request)
	if len(lines) == 1 {
		sign(diary, "again", request)
		fmt.Printf(`{"p":"DLGT","to":"fast","body":{"t":"work","d":{"delegation_mode":"assist","version":%d}}}`+"\n", request.Input.Payload.Version)
		return
	}
	fmt.Printf(`{"p":"DONE","body":{"t":"work","d":{"summary":%q}}}`+"\n", request.words())
}
