package view

import (
	"mailboxd/internal/access/client"
	"mailboxd/internal/decisions/task"
)

// ServiceWords says what is asked instead of a program; "" for a program.
func ServiceWords(p client.Plan) string {
	s := p.Service
	if s == nil {
		return ""
	}
	token := ""
	if s.BearerEnv != "" {
		token = ", with the token in " + s.BearerEnv
	}
	if s.Mode == task.ServiceA2A {
		words := "the agent of A2A at " + s.URL + token + ", "
		if s.Card == "" {
			return words + "whose card can't be read"
		}
		return words + "with the card " + ContentWords(s.Card)
	}
	if s.Server == "" {
		words := "POST " + s.URL + ", answers by " + string(s.Mode) + token
		if s.Idempotent {
			words += ", may be sent again"
		}
		return words
	}
	words := "the tool " + s.Tool + " of " + s.Server
	if s.URL != "" {
		words += " at " + s.URL + token
	}
	if s.Arguments != nil {
		words += ", with " + string(s.Arguments)
	}
	return words
}
