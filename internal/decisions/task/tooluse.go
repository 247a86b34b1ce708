package task

import "mailboxd/envelope"

// A ToolUse is one call of a tool through the tool broker, or a change of a tool. Its bodies are in the
// run directory.
type ToolUse struct {
	ID        string `json:"id,omitzero"`        // of the call; "": it was refused before it had one
	Tool      string `json:"tool"`               // server/tool
	Arguments string `json:"arguments,omitzero"` // the SHA-256 of the arguments, in hexadecimal
	Result    string `json:"result,omitzero"`    // the SHA-256 of the result; "": there is none
	TookMS    int64  `json:"took_ms,omitzero"`
	Tokens    int64  `json:"tokens,omitzero"` // that the tool says it used
	USDCents  int64  `json:"usd_cents,omitzero"`
	Failed    bool   `json:"failed,omitzero"` // the tool, or its server
	Why       string `json:"why,omitzero"`    // why it failed, was refused, or is held

	Kind envelope.Kind `json:"kind,omitzero"` // of a refusal
}
