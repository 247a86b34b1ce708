package fakemodel

import (
	"cmp"
	"fmt"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// responsesAPI is OpenAI's Responses API:
// https://platform.openai.com/docs/api-reference/responses-streaming.
var responsesAPI = api{"responses", readResponses, streamResponses, wholeResponses, openAIProblem}

func readResponses(_ string, body []byte) (Request, bool) {
	var data struct {
		Model        string           `json:"model"`
		Stream       bool             `json:"stream"`
		Instructions string           `json:"instructions"`
		Input        []jsontext.Value `json:"input"`
		Tools        []struct {
			Type string `json:"type"`
			Name string `json:"name"`
		} `json:"tools"`
	}
	_ = json.Unmarshal(body, &data) // what can't be read is empty
	r := Request{Model: data.Model, System: data.Instructions}
	for _, item := range data.Input {
		var m struct {
			Type    string         `json:"type"`
			Role    string         `json:"role"`
			Content jsontext.Value `json:"content"`
		}
		_ = json.Unmarshal(item, &m)
		text := string(item)
		if m.Role != "" {
			text = textOf(m.Content)
		}
		r.Messages = append(r.Messages, Message{cmp.Or(m.Role, m.Type), text})
	}
	for _, tool := range data.Tools {
		r.Tools = append(r.Tools, cmp.Or(tool.Name, tool.Type))
	}
	return r, data.Stream
}

func responsesUsage(u Usage) object {
	return object{
		"input_tokens": u.Input + u.Cached, "input_tokens_details": object{"cached_tokens": u.Cached},
		"output_tokens": u.Output, "output_tokens_details": object{"reasoning_tokens": 0},
		"total_tokens": u.Input + u.Cached + u.Output,
	}
}

// freeformTools take a text instead of an object: https://platform.openai.com/docs/guides/function-calling#custom-tools.
var freeformTools = map[string]bool{"apply_patch": true}

func responsesItems(r Reply) (items []object) {
	if r.Text != "" {
		items = append(items, object{
			"type": "message", "id": messageID(), "role": "assistant", "status": "completed",
			"content": []any{object{"type": "output_text", "text": r.Text, "annotations": []any{}}},
		})
	}
	for i, call := range r.Calls {
		id := callID(i)
		if freeformTools[call.Tool] {
			items = append(items, object{
				"type": "custom_tool_call", "id": "ctc_" + id, "call_id": id, "name": call.Tool, "input": call.Input["input"], "status": "completed",
			})
			continue
		}
		item := object{
			"type": "function_call", "id": "fc_" + id, "call_id": id, "name": call.Tool, "arguments": inputJSON(call.Input), "status": "completed",
		}
		if call.Namespace != "" {
			item["namespace"] = call.Namespace
		}
		items = append(items, item)
	}
	return items
}

func wholeResponses(model string, r Reply) any {
	return object{
		"id": "resp_" + messageID(), "object": "response", "status": "completed", "model": model,
		"output": responsesItems(r), "usage": responsesUsage(r.Usage),
	}
}

func streamResponses(out *events, model string, r Reply) {
	id := "resp_" + messageID()
	event := func(kind string, members object) {
		members["type"] = kind
		out.send(kind, members)
	}
	event("response.created", object{"response": object{"id": id, "object": "response", "status": "in_progress", "model": model, "output": []any{}}})
	items := responsesItems(r)
	for i, item := range items {
		added := object{}
		for name, value := range item {
			added[name] = value
		}
		added["status"] = "in_progress"
		if item["type"] == "message" {
			added["content"] = []any{}
		}
		event("response.output_item.added", object{"output_index": i, "item": added})
		if item["type"] == "message" {
			first, second := halves(r.Text)
			event("response.output_text.delta", object{"item_id": item["id"], "output_index": i, "content_index": 0, "delta": first})
			out.middle(r)
			event("response.output_text.delta", object{"item_id": item["id"], "output_index": i, "content_index": 0, "delta": second})
		}
		event("response.output_item.done", object{"output_index": i, "item": item})
	}
	out.middle(r)
	event("response.completed", object{"response": object{
		"id": id, "object": "response", "status": "completed", "model": model, "output": items, "usage": responsesUsage(r.Usage),
	}})
}

// openAIProblem has the errors of both APIs of OpenAI:
// https://platform.openai.com/docs/guides/error-codes.
func openAIProblem(h http.Header, p Problem, after time.Duration, text string) (int, any) {
	status, kind, code, message := http.StatusServiceUnavailable, "server_error", "server_is_overloaded", "The engine is currently overloaded, please try again later"
	switch p {
	case Unauthorized:
		status, kind, code, message = http.StatusUnauthorized, "invalid_request_error", "invalid_api_key", "Incorrect API key provided: sk-fake."
	case RateLimited:
		status, kind, code, message = http.StatusTooManyRequests, "tokens", "rate_limit_exceeded", "Rate limit reached for the model on tokens per min (TPM)."
		if after > 0 {
			message += fmt.Sprintf(" Please try again in %ds.", seconds(after))
		}
	case QuotaUsedUp:
		status, kind, code, message = http.StatusTooManyRequests, "usage_limit_reached", "usage_limit_reached", "The usage limit has been reached"
	case TooLong:
		status, kind, code, message = http.StatusBadRequest, "invalid_request_error", "context_length_exceeded", "Your input exceeds the context window of this model."
	}
	problem := object{"message": cmp.Or(text, message), "type": kind, "code": code, "param": nil}
	if after > 0 {
		h.Set("Retry-After", fmt.Sprint(seconds(after)))
	}
	if p == QuotaUsedUp {
		problem["plan_type"] = "plus"
		if after > 0 {
			problem["resets_at"] = time.Now().Add(after).Unix()
		}
	}
	return status, object{"error": problem}
}
