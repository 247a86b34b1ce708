package view

import (
	"mailboxd/internal/access/client"
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
