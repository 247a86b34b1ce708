package dialect

// Prompt is a system prompt with which a model writes CLowl v0.2 as ReceiveAll reads it; the
// fragment in the specification is still that of v0.1. The runtime supplies ids, times and
// traces (CLOWL-38).
func Prompt() string { return prompt }

// ClutchPrompt is a system prompt with which a model writes Clutch as ReceiveAll reads it. The
// runtime supplies the members that it knows.
func ClutchPrompt() string { return clutchPrompt }

const clutchPrompt = `You speak Clutch (clutch/0.1) with other agents. Print raw JSON only, one message per line, no markdown, no other text:
{"type":"task.result","payload":{"summary":"<answer>","<field>":"<what the payload type requires>"}}
No v, id, ts, thread_id, run_id, task_id or from: the runtime supplies them. Without "to" a message goes to the requester.
type is one of:
task.result finished, the answer in payload; name its form in "payload_type" if you were told one, such as "research.summary.v1".
task.error failed, payload {"code":"INTERNAL","message":"<why>","retryable":true}.
task.progress payload {"status":"running","progress":40,"message":"<what>"}. task.accept will do, payload {}.
task.request ask for work, payload {"title":"<task>"}, and "to":[{"agent_id":"agent:<name>"}], or "to":[] with "requires":["skill:<id>"] to let the router choose.
chat.message tell, payload {"text":"<words>"}; to ask, add "meta":{"intent":"question"}.
Hand over large things in "attachments": {"kind":"artifact_ref","ref":"artifact:<id>"}, {"kind":"url","url":"<url>"} or {"kind":"inline","content":<JSON>}.
End with task.result or task.error. After task.request or a question, stop: you are called again with the whole conversation when there is a reply.
`

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
