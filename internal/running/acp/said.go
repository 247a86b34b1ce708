package acp

import (
	"math/big"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// partialName is the name of opencode, which reports the tokens of the last step of a turn alone.
const partialName = "OpenCode"

// maxText limits the text of an answer, in bytes.
const maxText = 1 << 20

// said is what the agent said: the text after its last call of a tool, and what it cost.
type said struct {
	text    []byte
	message string // the id of the message that text is of; "" for one without
	between bool   // a call came since: the next text is another one
	partial bool   // the agent counts only a part of its tokens

	tokens        *int64
	cost, earlier price
}

// A price is an amount of money. Its amount is nil if it is unknown.
type price struct {
	amount   *big.Rat
	currency string
}

func (s *said) interrupt() { s.between = true }

func (s *said) add(message, text string) {
	if s.between || message != s.message {
		s.text, s.message, s.between = nil, message, false
	}
	s.text = append(s.text, text[:min(len(text), max(0, maxText+1-len(s.text)))]...)
}

// price reads the cost of the session so far. What it had cost before the run isn't the run's.
func (s *said) price(cost jsontext.Value, live bool) {
	var c struct {
		Amount   jsontext.Value `json:"amount"`
		Currency string         `json:"currency"`
	}
	if json.Unmarshal(cost, &c, lenient) != nil || c.Amount.Kind() != '0' {
		return
	}
	amount, ok := new(big.Rat).SetString(string(c.Amount))
	if !ok || amount.Sign() < 0 {
		return
	}
	s.cost = price{amount, c.Currency}
	if !live {
		s.earlier = s.cost
	}
}

// count reads how many tokens the turn used. Gemini CLI 0.61.0 says it in an extension.
func (s *said) count(usage, meta jsontext.Value) {
	var u struct {
		Total *int64 `json:"totalTokens"`
	}
	if json.Unmarshal(usage, &u, lenient) == nil && u.Total != nil {
		if !s.partial {
			s.tokens = u.Total
		}
		return
	}
	var m struct {
		Quota struct {
			Count *struct {
				Input  int64 `json:"input_tokens"`
				Output int64 `json:"output_tokens"`
			} `json:"token_count"`
		} `json:"quota"`
	}
	if json.Unmarshal(meta, &m, lenient) == nil && m.Quota.Count != nil {
		total := m.Quota.Count.Input + m.Quota.Count.Output
		s.tokens = &total
	}
}
