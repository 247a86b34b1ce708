package ledger

import (
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"sort"
	"strings"
	"sync"
)

var dbg = struct {
	sync.Mutex
	n map[string]int
}{n: map[string]int{}}

func dbgNote(kind string) {
	pcs := make([]uintptr, 14)
	n := runtime.Callers(3, pcs)
	fr := runtime.CallersFrames(pcs[:n])
	var w []string
	for {
		f, more := fr.Next()
		fn := f.Function[strings.LastIndex(f.Function, "/")+1:]
		w = append(w, fmt.Sprintf("%s:%d", fn, f.Line))
		if !more || len(w) > 8 {
			break
		}
	}
	dbg.Lock()
	dbg.n[kind+" "+strings.Join(w, " < ")]++
	dbg.Unlock()
}

func init() {
	if len(os.Args) > 1 && os.Args[1] == "serve" {
		f, _ := os.Create(fmt.Sprintf("/tmp/pf/cpu-%d.prof", os.Getpid()))
		_ = pprof.StartCPUProfile(f)
	}
}

func dbgPrint() {
	pprof.StopCPUProfile()
	dbg.Lock()
	defer dbg.Unlock()
	var ks []string
	for k := range dbg.n {
		ks = append(ks, k)
	}
	sort.Slice(ks, func(i, j int) bool { return dbg.n[ks[i]] > dbg.n[ks[j]] })
	f, _ := os.OpenFile("/tmp/pf/dbg.txt", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	defer f.Close()
	fmt.Fprintln(f, "----", os.Args)
	for i, k := range ks {
		if i > 25 {
			break
		}
		fmt.Fprintln(f, dbg.n[k], k)
	}
}
