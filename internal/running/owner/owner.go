// Package owner is the side of the mailbox in the protocol with runners of other machines: it gives them runs,
// waits for their outcomes, and brings their files. What may happen is decided by fleet.Owner; the ledger of the
// mailbox has each run before a runner has it, and its end before the runner forgets it.
package owner

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"mailboxd/internal/decisions/fleet"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/carrier"
	"mailboxd/internal/stores/artifact"
	"mailboxd/internal/stores/worktree"
)

// Options are what an Owner works with. All functions are required, and safe for concurrent use.
type Options struct {
	Connect     carrier.Options
	Dir         string        // below the state directory: what runners announced
	Lease       time.Duration // of runs; 0: a minute
	Unreachable time.Duration // until a run that can't be reached is lost; 0: a day

	Suits      func(agent, runner string, capabilities []string) bool     // whether a runner may have an agent
	Idempotent func(agent string) bool                                    // whether runs of an agent may be repeated
	Worktree   func(agent string) bool                                    // whether its runs work in clones of repositories of this machine
	Past       func(token fleet.Token, runner string) (fleet.Past, error) // how a run of a runner ended, as the ledger has it
	Lost       func(j task.Job, message string) task.Outcome              // makes the outcome of a run whose end is unknown

	Changed func()                                  // a runner has room for a run
	Fits    func(tasks []int64)                     // a runner has room for runs of tasks that Assign refused, or has other agents
	LateDir func(token fleet.Token) (string, error) // where the files of an answer go that came after the end of its run; "": nowhere
	Fenced  func(late task.LateAnswer) error        // records such an answer durably: Past is PastFenced from then on
	Closed  func(runner, reason string)             // a runner isn't served any more

	Worktrees worktree.Store  // makes bundles of commits, and keeps patches
	Artifacts *artifact.Store // where runs publish files; nil: nowhere
	MaxFile   int64           // bytes of one file of a run; 0: 256 MiB
	Log       zerolog.Logger
}

// An Owner has the runners of a mailbox. New makes it, and Serve runs it.
type Owner struct {
	opts   Options
	files  *files
	work   sync.WaitGroup // all goroutines but Serve's
	over   chan struct{}  // closed when Serve ends
	fences fences
	busy   busy

	saving sync.Mutex // allows one write of runners.json at a time, and guards saved
	saved  int64      // the greatest number of a call of save whose changes the file has

	mu       sync.Mutex                         // guards the fields below
	link     *carrier.Owner                     // nil: not connected yet
	core     *fleet.Owner                       // nil as long as link is
	start    func(do func(ctx context.Context)) // runs a function in a goroutine until Serve ends; nil as long as link is
	unserved []func()                           // handle messages that came before core was there
	epoch    int64                              // the latest one
	known    map[string]fleet.Known             // what runners announced, as the file has it
	saves    int64                              // calls of save
	endRenew func()                             // ends the latest call of renew; nil: none
	away     string                             // why the hub isn't connected; "": it is
	runs     map[fleet.Token]*run               // that the engine waits for
	pasts    pasts                              // how runs ended that runners still list
	rooms
}

// New makes an Owner that knows what runners announced earlier.
func New(opts Options) (*Owner, error) {
	if opts.MaxFile == 0 {
		opts.MaxFile = fleet.MaxFile
	}
	o := &Owner{
		opts: opts, over: make(chan struct{}), known: map[string]fleet.Known{}, away: "not connected yet",
		runs: map[fleet.Token]*run{}, pasts: pasts{},
		rooms: rooms{claims: map[claim]func(fleet.Reply){}, reserved: map[string]int{}, unfit: unfit{}},
	}
	o.files = &files{Options: &o.opts, link: func() *carrier.Owner { return o.link }, malformed: o.malformed}
	o.fences = fences{files: o.files, busy: map[fleet.Token]bool{}}
	return o, o.load()
}

// Times of the owner.
const (
	firstPause, longestPause = 200 * time.Millisecond, 10 * time.Second // between attempts to connect
	tickEvery                = 500 * time.Millisecond
)

// Serve connects to the hub once ready is closed, and serves until ctx ends. Runs go on at their runners after that.
func (o *Owner) Serve(ctx context.Context, ready <-chan struct{}) error {
	defer o.work.Wait()
	defer close(o.over)
	select {
	case <-ready:
	case <-ctx.Done():
		return nil
	}
	link := o.connect(ctx)
	if link == nil {
		return nil
	}
	defer link.Close()
	o.background(o.renew)
	tick := time.NewTicker(tickEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			o.do(func() []fleet.Duty { return o.core.Close(time.Now()) }) // or runners wait for the answers, and ask the next daemon later
			return nil
		case now := <-tick.C:
			o.do(func() []fleet.Duty { return o.core.Tick(now) })
			o.followRuns(now)
		}
	}
}

// connect connects, takes the next epoch, and begins to serve. It tries again until ctx ends.
func (o *Owner) connect(ctx context.Context) *carrier.Owner {
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		link, err := o.dial(ctx)
		if err == nil {
			return link
		}
		if ctx.Err() != nil {
			return nil
		}
		o.opts.Log.Warn().Err(err).Msg("hub of the runners not connected")
		o.mu.Lock()
		o.away = err.Error()
		o.mu.Unlock()
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

func (o *Owner) dial(ctx context.Context) (*carrier.Owner, error) {
	connect := o.opts.Connect
	connect.Changed = o.linkChanged
	link, err := carrier.DialOwner(ctx, carrier.OwnerOptions{
		Options: connect, Closed: o.malformed,
		Hello: serving(o, o.hello), Claim: serving(o, o.claim), Beat: serving(o, o.beat), Note: serving(o, o.note), Done: serving(o, o.done),
	})
	if err != nil {
		return nil, err
	}
	o.mu.Lock()
	least := o.epoch
	o.mu.Unlock()
	epoch, err := link.TakeEpoch(ctx, least)
	if err == nil {
		err = o.begin(ctx, link, epoch)
	}
	if err != nil {
		link.Close()
		return nil, err
	}
	return link, nil
}

// begin begins to serve with an epoch that is durable.
func (o *Owner) begin(ctx context.Context, link *carrier.Owner, epoch int64) error {
	o.mu.Lock()
	o.epoch = epoch
	o.mu.Unlock()
	if err := o.save(); err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.core = fleet.NewOwner(epoch, fleet.Options{Lease: o.opts.Lease, Unreachable: o.opts.Unreachable, Past: o.past})
	for _, k := range o.known {
		o.core.Know(k)
	}
	for _, one := range o.runs {
		one.restore(o.core)
	}
	o.link, o.away = link, ""
	unserved := o.unserved
	o.unserved = nil
	o.work.Go(func() {
		for _, handle := range unserved {
			handle()
		}
	})
	o.start = func(do func(context.Context)) { o.work.Go(func() { do(ctx) }) }
	return nil
}

// mostUnserved limits the messages that wait for the owner. The others are sent again.
const mostUnserved = 4096

// serving handles messages once the owner serves.
func serving[M, A any](o *Owner, handle func(M, func(A))) func(M, func(A)) {
	return func(m M, answer func(A)) {
		o.mu.Lock()
		serves := o.core != nil
		if !serves && len(o.unserved) < mostUnserved {
			o.unserved = append(o.unserved, func() { handle(m, answer) })
		}
		o.mu.Unlock()
		if serves {
			handle(m, answer)
		}
	}
}

// linkChanged takes that the connection was lost, or is back. Claims that came before can't be answered any more.
func (o *Owner) linkChanged(lost error) {
	o.do(func() []fleet.Duty { return o.core.Close(time.Now()) })
	o.mu.Lock()
	if o.away = ""; lost != nil {
		o.away = lost.Error()
	}
	o.mu.Unlock()
	if lost == nil {
		o.background(o.renew)
	}
}

// renew makes what the hub has lost, and wakes the runners: what they sent while the owner was away had no answer. It
// tries again until it succeeds or the connection is lost, after which it is called again: the latest call goes on.
func (o *Owner) renew(ctx context.Context) {
	o.mu.Lock()
	link, epoch, names := o.link, o.epoch, slices.Collect(maps.Keys(o.known))
	ctx, end := context.WithCancel(ctx)
	if o.endRenew != nil {
		o.endRenew()
	}
	o.endRenew = end
	o.mu.Unlock()
	defer end()
	o.files.hubFaults.clear()
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		err := link.Renew(ctx, epoch)
		if err == nil {
			var made []string
			made, names, err = o.files.ensure(ctx, link, names)
			for _, name := range made {
				o.order(name, fleet.Order{Wake: true})
			}
		}
		if err == nil || ctx.Err() != nil || !link.Connected() {
			return
		}
		o.opts.Log.Warn().Err(err).Msg("streams and buckets of the hub not made")
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// malformed stops serving a runner that sent what no runner sends. Its runs go on.
func (o *Owner) malformed(runner, reason string) {
	o.do(func() []fleet.Duty { return o.core.Refuse(time.Now(), runner, reason) })
}

// background runs a function that may wait, unless the owner doesn't serve. The caller doesn't hold mu.
func (o *Owner) background(do func(ctx context.Context)) {
	o.mu.Lock()
	start := o.start
	o.mu.Unlock()
	if start != nil {
		start(do)
	}
}

// do changes the state machine, and carries out its duties. It does nothing before the owner serves.
func (o *Owner) do(change func() []fleet.Duty) {
	o.mu.Lock()
	var sends []func()
	if o.core != nil {
		sends = o.duties(change())
	}
	o.mu.Unlock()
	for _, send := range sends {
		send()
	}
}

// duties carries out duties, and returns what the caller does when it doesn't hold mu any more. The caller holds
// mu.
func (o *Owner) duties(all []fleet.Duty) (sends []func()) {
	for _, d := range all {
		one := o.runs[d.Token]
		switch {
		case d.Kind == fleet.DutyAnswer:
			sends = append(sends, o.endClaim(d, o.runs))
		case d.Kind == fleet.DutyRefused:
			o.opts.Log.Error().Str("runner", d.Runner).Str("reason", d.Why).Msg("runner not served")
			sends = append(sends, func() { o.opts.Closed(d.Runner, d.Why) })
		case d.Kind == fleet.DutyUnknown:
			o.opts.Log.Warn().Str("runner", d.Runner).Str("token", string(d.Token)).Msg("runner has a run that the ledger doesn't know")
		case one == nil:
		case d.Kind == fleet.DutyVoided:
			one.deliver(task.Outcome{Void: errVoided})
		case d.Kind == fleet.DutyRepeat, d.Kind == fleet.DutyLost:
			sends = append(sends, one.end(o.epoch), func() { o.lose(one, d) })
		case d.Kind == fleet.DutyUnreachable, d.Kind == fleet.DutyReached:
			one.unreached = d.Kind == fleet.DutyUnreachable
			sends = append(sends, func() { o.background(func(context.Context) { o.reach(one) }) })
		}
	}
	return sends
}
