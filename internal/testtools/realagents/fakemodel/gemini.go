package fakemodel

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// geminiAPI is the generateContent of Gemini: https://ai.google.dev/api/generate-content.
var geminiAPI = api{"gemini", readGemini, streamGemini, wholeGemini, geminiProblem}

type geminiContent struct {
	Role  string         `json:"role"`
	Parts jsontext.Value `json:"parts"`
}

func readGemini(path string, body []byte) (Request, bool) {
	var data struct {
		System   geminiContent   `json:"systemInstruction"`
		Contents []geminiContent `json:"contents"`
		Tools    []struct {
			Functions []struct {
				Name string `json:"name"`
			} `json:"functionDeclarations"`
		} `json:"tools"`
	}
	_ = json.Unmarshal(body, &data) // what can't be read is empty
	_, model, _ := strings.Cut(path, "/models/")
	model, method, _ := strings.Cut(model, ":")
	r := Request{Model: model, System: textOf(data.System.Parts)}
	for _, c := range data.Contents {
		r.Messages = append(r.Messages, Message{c.Role, textOf(c.Parts)})
	}
	for _, tools := range data.Tools {
		for _, function := range tools.Functions {
			r.Tools = append(r.Tools, function.Name)
		}
	}
	return r, method == "streamGenerateContent"
}

func geminiChunk(model string, parts []object, reason string, usage *Usage) object {
	candidate := object{"index": 0, "content": object{"role": "model", "parts": parts}}
	if reason != "" {
		candidate["finishReason"] = reason
	}
	chunk := object{"candidates": []any{candidate}, "modelVersion": model, "responseId": messageID()}
	if usage != nil {
		chunk["usageMetadata"] = object{
			"promptTokenCount": usage.Input + usage.Cached, "cachedContentTokenCount": usage.Cached,
			"candidatesTokenCount": usage.Output, "totalTokenCount": usage.Input + usage.Cached + usage.Output,
		}
	}
	return chunk
}

func geminiCalls(r Reply) (parts []object) {
	for i, call := range r.Calls {
		parts = append(parts, object{"functionCall": object{"id": callID(i), "name": call.Tool, "args": call.Input}})
	}
	return parts
}

func wholeGemini(model string, r Reply) any {
	parts := geminiCalls(r)
	if r.Text != "" {
		parts = append([]object{{"text": r.Text}}, parts...)
	}
	return geminiChunk(model, parts, "STOP", &r.Usage)
}

func streamGemini(out *events, model string, r Reply) {
	if r.Text != "" {
		first, second := halves(r.Text)
		out.send("", geminiChunk(model, []object{{"text": first}}, "", nil))
		out.middle(r)
		out.send("", geminiChunk(model, []object{{"text": second}}, "", nil))
	}
	out.middle(r)
	parts := geminiCalls(r)
	if len(parts) == 0 {
		parts = []object{{"text": ""}}
	}
	out.send("", geminiChunk(model, parts, "STOP", &r.Usage))
}

// geminiProblem has the errors of Google's APIs: https://ai.google.dev/gemini-api/docs/troubleshooting
// and google/rpc/error_details.proto.
func geminiProblem(_ http.Header, p Problem, after time.Duration, text string) (int, any) {
	status, name, message := http.StatusServiceUnavailable, "UNAVAILABLE", "The model is overloaded. Please try again later."
	var details []object
	quota := func(id string) {
		status, name = http.StatusTooManyRequests, "RESOURCE_EXHAUSTED"
		message = "You exceeded your current quota, please check your plan and billing details."
		details = append(details, object{
			"@type": "type.googleapis.com/google.rpc.QuotaFailure",
			"violations": []any{object{
				"quotaMetric": "generativelanguage.googleapis.com/generate_content_free_tier_requests", "quotaId": id, "quotaValue": "20",
			}},
		})
	}
	switch p {
	case Unauthorized:
		status, name, message = http.StatusBadRequest, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key."
		details = append(details, object{
			"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID", "domain": "googleapis.com",
		})
	case RateLimited:
		quota("GenerateRequestsPerMinutePerProjectPerModel-FreeTier")
	case QuotaUsedUp:
		quota("GenerateRequestsPerDayPerProjectPerModel-FreeTier")
	case TooLong:
		status, name, message = http.StatusBadRequest, "INVALID_ARGUMENT", "The input token count exceeds the maximum number of tokens allowed 1048576."
	}
	if after > 0 {
		details = append(details, object{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": fmt.Sprintf("%ds", seconds(after))})
	}
	return status, object{"error": object{"code": status, "message": cmp.Or(text, message), "status": name, "details": details}}
}
