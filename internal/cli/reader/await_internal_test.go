package reader

import (
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestTheResultOfAnEarlierRevisionHasTheLedgerAskedEverMoreRarely(t *testing.T) {
	dir := t.TempDir()
	socket := filepath.Join(dir, "s")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/row") {
			asked++
		}
		io.WriteString(w, `{"result_final":false}`)
	})}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) })
	defer serving.Wait()
	defer server.Close()
	put := func(text string) {
		if err := os.WriteFile(filepath.Join(dir, "results", "t1.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "results"), 0o700); err != nil {
		t.Fatal(err)
	}
	put(`{"task_id":"t1","status":"ok"}`)
	w, now := resultWait{at: Location{Root: dir, Socket: socket}, root: dir, id: "t1"}, time.Now()
	for range 600 { // a minute
		if raw := w.look(t.Context(), now); raw != nil {
			t.Fatalf("look() = %s; want none", raw)
		}
		now = now.Add(100 * time.Millisecond)
	}
	if asked < 30 || asked > 80 {
		t.Errorf("the ledger was asked %d times in a minute; want about once a second", asked)
	}
	before := asked
	put(`{"task_id":"t1","status":"error"}`)
	w.look(t.Context(), now)
	if asked != before+1 {
		t.Error("the ledger wasn't asked about a new result at once")
	}
}
