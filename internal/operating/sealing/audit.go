package sealing

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"mailboxd/internal/stores/ledger"
	"mailboxd/internal/stores/seal"
)

// An Audit is the report about a ledger, and what it rests on.
type Audit struct {
	seal.Report
	Anchored int    `json:"anchored"`       // seals that the anchor has
	Key      string `json:"key,omitempty"`  // why no event is sealed now
	Note     string `json:"note,omitempty"` // what the audit can't find
}

// Unanchored is what no audit finds without an anchor.
const Unanchored = "no anchor file was compared: a rewrite of all history with the same key, or a cut tail, can't be found"

// Check audits a ledger. Keys that are given replace those of the state directory, and so does an anchor.
func (o Options) Check(ctx context.Context, r *ledger.Reader, keys seal.Keys, anchor string) (a Audit, err error) {
	if keys == nil {
		if keys, err = o.Trusted(); err != nil {
			return a, err
		}
	}
	if anchor != "" {
		o.AnchorFile = anchor
	}
	anchored, err := o.anchored()
	if err != nil {
		return a, err
	}
	if a.Anchored = len(anchored); o.AnchorFile == "" {
		a.Note = Unanchored
	}
	var checker *seal.Checker
	err = r.Audit(ctx, func(seals []seal.Seal, prunes []seal.Prune) *seal.Checker {
		checker = seal.NewChecker(seal.Chain{Seals: seals, Prunes: prunes, Keys: keys, Anchored: anchored})
		return checker
	})
	if err != nil {
		return a, err
	}
	a.Report = checker.Report()
	if err := o.Problem(a.Seals > 0); err != nil {
		a.Key = err.Error()
	}
	return a, nil
}

// Print prints an audit for people.
func (a Audit) Print(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, p := range a.Parts {
		fmt.Fprintf(table, "%s\t%s\t%d events\n", p.State, seal.Span{First: p.First, Last: p.Last}, p.Events)
	}
	for _, s := range a.Starts {
		fmt.Fprintf(table, "new chain\t%d\tit names the head %s\n", s.First, s.Names)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if a.Head != nil {
		fmt.Fprintf(w, "seals: %d, head %s by key %s\n", a.Seals, a.Head.Hash, a.Head.Key)
	}
	if a.Key != "" {
		fmt.Fprintf(w, "new events are not sealed: %s\n", a.Key)
	}
	if a.Note != "" {
		fmt.Fprintln(w, a.Note)
	}
	if d := a.Difference; d != nil {
		fmt.Fprintf(w, "difference in %s: %s\n", seal.Span{First: d.First, Last: d.Last}, d.What)
		return nil
	}
	_, err := fmt.Fprintln(w, "no difference found")
	return err
}

// Export returns the trusted public keys in PEM, in the order of the list.
func (o Options) Export() (text []byte, err error) {
	list, err := o.List()
	if err == nil && len(list) == 0 {
		err = errors.New("export keys: there is no key yet; serve makes one at its first start")
	}
	for _, k := range list {
		if err == nil {
			var block []byte
			block, err = seal.EncodePublic(k.Public)
			text = append(text, block...)
		}
	}
	return text, err
}

// PrintKeys prints the list of keys for people.
func (o Options) PrintKeys(w io.Writer) error {
	list, err := o.List()
	if err != nil {
		return err
	}
	now := ""
	if by, err := o.Signer(); err == nil {
		now = by.Key()
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, k := range list {
		origin := "no other key signed it"
		if k.Replaces != "" {
			origin = "signed by " + k.Replaces
		}
		if k.Key == now {
			origin += ", signs now"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\n", k.Key, time.UnixMicro(k.Time).UTC().Format(time.RFC3339), origin)
	}
	return table.Flush()
}
