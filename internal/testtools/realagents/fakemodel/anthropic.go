package fakemodel

import (
	"cmp"
	"fmt"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// messagesAPI is Anthropic's Messages API: https://docs.claude.com/en/api/messages-streaming
// and https://docs.claude.com/en/api/errors.
var messagesAPI = api{"messages", readMessages, streamMessages, wholeMessages, messagesProblem}

func readMessages(_ string, body []byte) (Request, bool) {
	var data struct {
		Model    string         `json:"model"`
		Stream   bool           `json:"stream"`
		System   jsontext.Value `json:"system"`
		Messages []struct {
			Role    string         `json:"role"`
			Content jsontext.Value `json:"content"`
		} `json:"messages"`
		Tools []struct {
			Name string `json:"name"`
		} `json:"tools"`
	}
	_ = json.Unmarshal(body, &data) // what can't be read is empty
	r := Request{Model: data.Model, System: textOf(data.System)}
	for _, m := range data.Messages {
		r.Messages = append(r.Messages, Message{m.Role, textOf(m.Content)})
	}
	for _, tool := range data.Tools {
		r.Tools = append(r.Tools, tool.Name)
	}
	return r, data.Stream
}

func messagesUsage(u Usage) object {
	return object{
		"input_tokens": u.Input, "output_tokens": u.Output,
		"cache_read_input_tokens": u.Cached, "cache_creation_input_tokens": 0,
	}
}

func messagesReason(r Reply) string {
	if len(r.Calls) > 0 {
		return "tool_use"
	}
	return "end_turn"
}

func wholeMessages(model string, r Reply) any {
	var content []object
	if r.Text != "" {
		content = append(content, object{"type": "text", "text": r.Text})
	}
	for i, call := range r.Calls {
		content = append(content, object{"type": "tool_use", "id": callID(i), "name": call.Tool, "input": call.Input})
	}
	return object{
		"id": messageID(), "type": "message", "role": "assistant", "model": model, "content": content,
		"stop_reason": messagesReason(r), "stop_sequence": nil, "usage": messagesUsage(r.Usage),
	}
}

func streamMessages(out *events, model string, r Reply) {
	event := func(kind string, members object) {
		members["type"] = kind
		out.send(kind, members)
	}
	begun := messagesUsage(r.Usage)
	begun["output_tokens"] = 1
	event("message_start", object{"message": object{
		"id": messageID(), "type": "message", "role": "assistant", "model": model, "content": []any{},
		"stop_reason": nil, "stop_sequence": nil, "usage": begun,
	}})
	index := 0
	if r.Text != "" || len(r.Calls) == 0 {
		first, second := halves(r.Text)
		event("content_block_start", object{"index": 0, "content_block": object{"type": "text", "text": ""}})
		event("content_block_delta", object{"index": 0, "delta": object{"type": "text_delta", "text": first}})
		if r.Short { // Claude Code asks again for a block that isn't whole
			event("content_block_stop", object{"index": 0})
		}
		out.middle(r)
		event("content_block_delta", object{"index": 0, "delta": object{"type": "text_delta", "text": second}})
		event("content_block_stop", object{"index": 0})
		index++
	}
	for i, call := range r.Calls {
		event("content_block_start", object{"index": index, "content_block": object{
			"type": "tool_use", "id": callID(i), "name": call.Tool, "input": object{},
		}})
		event("content_block_delta", object{"index": index, "delta": object{"type": "input_json_delta", "partial_json": inputJSON(call.Input)}})
		event("content_block_stop", object{"index": index})
		index++
	}
	event("message_delta", object{
		"delta": object{"stop_reason": messagesReason(r), "stop_sequence": nil}, "usage": messagesUsage(r.Usage),
	})
	event("message_stop", object{})
}

func messagesProblem(h http.Header, p Problem, after time.Duration, text string) (int, any) {
	status, kind, message := http.StatusServiceUnavailable, "api_error", "The service is temporarily unavailable"
	switch p {
	case Unauthorized:
		status, kind, message = http.StatusUnauthorized, "authentication_error", "invalid x-api-key"
	case RateLimited:
		status, kind, message = http.StatusTooManyRequests, "rate_limit_error", "This request would exceed your account's rate limit. Please try again later."
	case QuotaUsedUp:
		status, kind, message = http.StatusTooManyRequests, "rate_limit_error", "This request would exceed your account's rate limit. Please try again later."
		h.Set("anthropic-ratelimit-unified-status", "rejected")
		h.Set("x-should-retry", "false")
		if after > 0 {
			h.Set("anthropic-ratelimit-unified-reset", fmt.Sprint(time.Now().Add(after).Unix()))
			h.Set("anthropic-ratelimit-unified-representative-claim", "five_hour")
		}
	case Overloaded:
		status, kind, message = 529, "overloaded_error", "Overloaded"
	case TooLong:
		status, kind, message = http.StatusBadRequest, "invalid_request_error", "prompt is too long: 250000 tokens > 200000 maximum"
	}
	if after > 0 {
		h.Set("Retry-After", fmt.Sprint(seconds(after)))
	}
	return status, object{"type": "error", "error": object{"type": kind, "message": cmp.Or(text, message)}}
}
