package seal_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"mailboxd/internal/stores/seal"
)

// A history is events 1 to 20, with a seal for each five of the first 15.
type history struct {
	items  []seal.Item
	seals  []seal.Seal
	prunes []seal.Prune
}

func newHistory() *history {
	h := &history{}
	for seq := int64(1); seq <= 20; seq++ {
		h.items = append(h.items, seal.Item{Seq: seq, Hash: seal.Event{Seq: seq, Kind: "k"}.Hash()})
	}
	for first := 0; first < 15; first += 5 {
		h.seal(first, first+5, h.head())
	}
	return h
}

func (h *history) head() (head seal.Hash) {
	if len(h.seals) > 0 {
		head = h.seals[len(h.seals)-1].Hash
	}
	return head
}

func (h *history) seal(from, to int, previous seal.Hash) {
	r := seal.NewRange(previous)
	for _, item := range h.items[from:to] {
		r.Add(item.Hash)
	}
	s, _ := seal.Seal{First: int64(from + 1), Last: int64(to), Previous: previous, Hash: r.Sum()}.Signed(key(0))
	h.seals = append(h.seals, s)
}

// prune removes events as retention does.
func (h *history) prune(seqs ...int64) {
	for _, seq := range seqs {
		h.items[seq-1].Pruned = true
	}
	p, _ := seal.Prune{Seqs: seal.SeqsOf(seqs), Head: h.head()}.Signed(key(0))
	h.prunes = append(h.prunes, p)
}

func (h *history) check(anchored ...seal.Seal) seal.Report {
	c := seal.NewChecker(seal.Chain{Seals: h.seals, Prunes: h.prunes, Keys: keys(key(0)), Anchored: anchored})
	for _, item := range h.items {
		c.Add(item)
	}
	return c.Report()
}

// describe makes a line of a report.
func describe(r seal.Report) string {
	var parts []string
	for _, p := range r.Parts {
		parts = append(parts, fmt.Sprintf("%s %d-%d", p.State, p.First, p.Last))
	}
	for _, s := range r.Starts {
		parts = append(parts, fmt.Sprintf("start %d", s.First))
	}
	if d := r.Difference; d != nil {
		parts = append(parts, fmt.Sprintf("difference %d-%d: %s", d.First, d.Last, d.What))
	}
	return strings.Join(parts, "; ")
}

func TestACheckerFindsWhatWasChanged(t *testing.T) {
	const hash = "the hash of the range is not that of the seal"
	untouched := newHistory()
	for name, test := range map[string]struct {
		change func(*history)
		want   string
	}{
		"nothing":       {func(*history) {}, "sealed 1-15; unsealed 16-20"},
		"update":        {func(h *history) { h.items[6].Hash[0]++ }, "difference 6-10: an event was changed or added: " + hash},
		"delete":        {func(h *history) { h.items = slices.Delete(h.items, 6, 7) }, "difference 6-10: " + hash + ", and event 7 is missing"},
		"insert at 0":   {func(h *history) { h.items = slices.Insert(h.items, 0, seal.Item{}) }, "difference 0-0: event 0 is before the range of a seal"},
		"insert in one": {func(h *history) { h.items = slices.Insert(h.items, 7, h.items[6]) }, "difference 6-10: an event was changed or added"},
		"swap": {func(h *history) {
			h.items[1].Hash, h.items[11].Hash = h.items[11].Hash, h.items[1].Hash
		}, "difference 1-5: an event was changed or added"},
		"cut events":    {func(h *history) { h.items = h.items[:12] }, "difference 11-15: " + hash + ", and event 13 is missing"},
		"cut all":       {func(h *history) { h.items, h.seals = h.items[:10], h.seals[:2] }, "sealed 1-10"},
		"cut the begin": {func(h *history) { h.items, h.seals = h.items[5:], h.seals[1:] }, "difference 1-5: the seal of this range is missing"},
		"a seal away":   {func(h *history) { h.seals = slices.Delete(h.seals, 1, 2) }, "difference 6-10: the seal of this range is missing"},
		"a seal twice":  {func(h *history) { h.seals = slices.Insert(h.seals, 1, h.seals[0]) }, "difference 1-5: the seal overlaps the one before"},
		"a forged seal": {func(h *history) { h.seals[1].Signature = h.seals[0].Signature }, "difference 6-10: the seal: signature of key"},
		"unknown key":   {func(h *history) { h.seals[1], _ = h.seals[1].Signed(key(1)) }, "difference 6-10: the seal: key " + key(1).Key() + " is not known"},
		"pruned":        {func(h *history) { h.prune(1, 2, 3, 4, 5, 7) }, "pruned 1-5; partly 6-10; sealed 11-15; unsealed 16-20"},
		"all pruned": {func(h *history) { h.prune(1, 2, 3, 4, 5); h.items = h.items[5:] },
			"pruned 1-5; sealed 6-15; unsealed 16-20"},
		"pruned hash away": {func(h *history) { h.prune(1, 2, 3); h.items = h.items[1:] },
			"difference 1-5: event 1 was removed by retention, and its hash is missing"},
		"no record":   {func(h *history) { h.items[7].Pruned = true }, "difference 8-8: event 8 is missing, and no signed record"},
		"record away": {func(h *history) { h.prune(1, 2, 3, 4, 5); h.items, h.prunes = h.items[5:], nil }, "difference 1-5: " + hash + ", and event 1 is missing"},
		"record of another ledger": {func(h *history) { h.prune(1); h.prunes[0].Head[0]++; h.prunes[0], _ = h.prunes[0].Signed(key(0)) },
			"difference 1-1: the record of removed events names a head"},
		"forged record": {func(h *history) { h.prune(1); h.prunes[0].Seqs[0].Last = 3 }, "difference 1-3: the record of removed events: signature"},
		"restored":      {func(h *history) { h.seal(15, 20, seal.Hash{1}) }, "sealed 1-20; start 16"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHistory()
			test.change(h)
			if got := describe(h.check()); !strings.Contains(got, test.want) || strings.HasPrefix(test.want, "sealed") && got != test.want {
				t.Errorf("report = %s\nwant %s", got, test.want)
			}
			if !strings.Contains(test.want, "difference") && name != "cut all" && name != "restored" {
				if got := h.check(untouched.seals...); got.Difference != nil {
					t.Errorf("with an anchor: %+v", got.Difference)
				}
			}
		})
	}
}

func TestAnAnchorFindsACutTailAndARewrittenHistory(t *testing.T) {
	anchored := newHistory().seals
	cut := newHistory()
	cut.items, cut.seals = cut.items[:5], cut.seals[:1]
	if got := describe(cut.check(anchored...)); !strings.Contains(got, "difference 6-10: the anchor has a seal that is missing here: "+anchored[1].Hash.String()) {
		t.Errorf("cut: %s", got)
	}
	rewritten := newHistory()
	rewritten.items[0].Hash[0]++
	rewritten.seals = nil
	rewritten.seal(0, 15, seal.Hash{})
	if got := describe(rewritten.check()); strings.Contains(got, "difference") {
		t.Errorf("rewritten with the same key: %s", got)
	}
	if got := describe(rewritten.check(anchored...)); !strings.Contains(got, "difference 1-5: the anchor has a seal") {
		t.Errorf("rewritten: %s", got)
	}
	restored := newHistory()
	restored.seals = restored.seals[:1]
	restored.seal(5, 12, anchored[2].Hash)
	if got := describe(restored.check(anchored...)); strings.Contains(got, "difference") || !strings.Contains(got, "start 6") {
		t.Errorf("restored: %s", got)
	}
	if got := describe(restored.check(slices.Concat(anchored, restored.seals[1:], cut.seals)...)); strings.Contains(got, "difference") {
		t.Errorf("restored, with later heads: %s", got)
	}
}

func TestPartOfAChainIsChecked(t *testing.T) {
	h := newHistory()
	c := seal.NewChecker(seal.Chain{Seals: h.seals[1:2], Keys: keys(key(0)), Partial: true})
	for _, item := range h.items[5:10] {
		c.Add(item)
	}
	if got := describe(c.Report()); got != "sealed 6-10" {
		t.Errorf("report = %s", got)
	}
}

func BenchmarkHashOfAnEvent(b *testing.B) {
	e := seal.Event{Seq: 123456, Time: 1700000000000000, Kind: "task.accepted", Task: "some-task-0001", Revision: 1, Data: []byte(strings.Repeat("x", 120))}
	for b.Loop() {
		e.Hash()
	}
}
