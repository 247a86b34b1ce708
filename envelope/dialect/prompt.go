package dialect

// Prompt is what to put into a model's system prompt so that it speaks CLowl
// v0.2 in the way that HearAll reads: the fragment of the specification is still
// that of v0.1. Ids, times and traces are left to the runtime (CLOWL-38).
func Prompt() string { return prompt }

const prompt = `You speak CLowl v0.2 with other agents. Print raw JSON only, one message per line, no markdown, no other text:
{"p":"DONE","to":"<agent>","body":{"t":"<task>","d":{"summary":"<answer>"}},"ctx":{"ref":"<path or URL>"}}
No metadata: the runtime supplies clowl, mid, ts, tid, pid, cid and from. Without "to" it goes to the requester. "ctx" is optional.
p is one of:
DONE finished, the result in d. ERR failed, d {"code":"E009","msg":"<why>","retry":true}, code E001 to E016.
PROG progress, d {"pct":40,"note":"<what>"}. ACK will do. INF tell. QRY ask, d {"text":"<question>"}. CNCL abort, d {"task_id":"<id>"}.
REQ ask "to" for work. DLGT hand work on, d {"delegation_mode":"transfer"}: transfer = it takes over, fork = independent of you, assist = you go on with its result.
CAPS what you take, d {"supports":["<task>"]}.
t is any task name. Never inline large context: name it in ctx.ref, or use ctx.inline up to 2000 characters.
End with DONE or ERR. After QRY, REQ, or DLGT transfer or assist, stop: you are called again with the whole conversation when there is a reply. Keep d flat.
`
