package fakemodel

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// chatAPI is OpenAI's Chat Completions API:
// https://platform.openai.com/docs/api-reference/chat-streaming.
var chatAPI = api{"chat", readChat, streamChat, wholeChat, openAIProblem}

func readChat(_ string, body []byte) (Request, bool) {
	var data struct {
		Model    string `json:"model"`
		Stream   bool   `json:"stream"`
		Messages []struct {
			Role    string         `json:"role"`
			Content jsontext.Value `json:"content"`
			Calls   jsontext.Value `json:"tool_calls"`
		} `json:"messages"`
		Tools []struct {
			Function struct {
				Name string `json:"name"`
			} `json:"function"`
		} `json:"tools"`
	}
	_ = json.Unmarshal(body, &data) // what can't be read is empty
	r := Request{Model: data.Model}
	for _, m := range data.Messages {
		text := textOf(m.Content) + string(m.Calls)
		if m.Role == "system" || m.Role == "developer" {
			r.System += text
			continue
		}
		r.Messages = append(r.Messages, Message{m.Role, text})
	}
	for _, tool := range data.Tools {
		r.Tools = append(r.Tools, tool.Function.Name)
	}
	return r, data.Stream
}

func chatUsage(u Usage) object {
	return object{
		"prompt_tokens": u.Input + u.Cached, "prompt_tokens_details": object{"cached_tokens": u.Cached},
		"completion_tokens": u.Output, "total_tokens": u.Input + u.Cached + u.Output,
	}
}

func chatReason(r Reply) string {
	if len(r.Calls) > 0 {
		return "tool_calls"
	}
	return "stop"
}

func chatCalls(r Reply) (calls []object) {
	for i, call := range r.Calls {
		calls = append(calls, object{
			"index": i, "id": callID(i), "type": "function", "function": object{"name": call.Tool, "arguments": inputJSON(call.Input)},
		})
	}
	return calls
}

func wholeChat(model string, r Reply) any {
	message := object{"role": "assistant", "content": r.Text}
	if len(r.Calls) > 0 {
		message["tool_calls"] = chatCalls(r)
	}
	return object{
		"id": "chatcmpl-" + messageID(), "object": "chat.completion", "created": 1, "model": model,
		"choices": []any{object{"index": 0, "message": message, "finish_reason": chatReason(r)}}, "usage": chatUsage(r.Usage),
	}
}

func streamChat(out *events, model string, r Reply) {
	id := "chatcmpl-" + messageID()
	chunk := func(delta object, reason any) object {
		return object{
			"id": id, "object": "chat.completion.chunk", "created": 1, "model": model,
			"choices": []any{object{"index": 0, "delta": delta, "finish_reason": reason}},
		}
	}
	first, second := halves(r.Text)
	out.send("", chunk(object{"role": "assistant", "content": first}, nil))
	out.middle(r)
	out.send("", chunk(object{"content": second}, nil))
	if len(r.Calls) > 0 {
		out.send("", chunk(object{"tool_calls": chatCalls(r)}, nil))
	}
	out.send("", chunk(object{}, chatReason(r)))
	end := chunk(object{}, nil)
	end["choices"], end["usage"] = []any{}, chatUsage(r.Usage)
	out.send("", end)
	out.raw("", []byte("[DONE]"))
}
