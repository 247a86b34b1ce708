package ledgerimport

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// frame is the frame of a number, with a row of each kind in which every value is NULL.
func frame(number uint64) []byte {
	b := binary.LittleEndian.AppendUint64(make([]byte, 8), number)
	for of := range statements {
		width := bytes.Count([]byte(statements[of]), []byte("?"))
		b = append(append(b, byte(of), byte(width)), make([]byte, width)...)
	}
	binary.LittleEndian.PutUint32(b, uint32(len(b)-frameHead))
	binary.LittleEndian.PutUint32(b[4:], crc32.Checksum(b[8:], castagnoli))
	return b
}

// block is a frame that fills its block, as later versions wrote it.
func block(number uint64) []byte {
	b := frame(number)
	return append(b, make([]byte, 4096-len(b))...)
}

func TestFramesAreReadInBlocksAndWithout(t *testing.T) {
	left := bytes.Repeat([]byte("of an earlier turn"), 1000)
	for what, text := range map[string][]byte{
		"in blocks":                      slices.Concat(block(3), block(4), block(5), left),
		"at once":                        slices.Concat(frame(3), frame(4), frame(5), left),
		"behind them one of an old turn": slices.Concat(block(3), block(4), block(5), block(2)),
		"and its end torn":               slices.Concat(block(3), block(4), frame(5)),
		"and the next one torn":          slices.Concat(block(3), block(4), block(5), frame(6)[:50]),
	} {
		if frames, first, err := framesOf(text, 3); err != nil || len(frames) != 2 || first != 4 {
			t.Errorf("%s: %d frames from %d, %v; want 2 from 4", what, len(frames), first, err)
		}
	}
}

func TestARedoLogThatMissesAFrameIsUnreadable(t *testing.T) {
	broken := block(4)
	broken[20] ^= 1
	for what, files := range map[string][2][]byte{
		"a damaged frame":     {slices.Concat(block(3), broken, block(5))},
		"no first frame":      {block(5)},
		"a gap between files": {block(4), block(6)},
	} {
		path := filepath.Join(t.TempDir(), "ledger.db")
		for i, text := range files {
			if err := os.WriteFile(path+redoEnds[i], text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if frames, err := readFrames(path, extent{applied: 3, live: true}); !errors.Is(err, ErrUnreadable) {
			t.Errorf("%s: readFrames() = %d frames, %v; want ErrUnreadable", what, len(frames), err)
		}
	}
	path := filepath.Join(t.TempDir(), "ledger.db")
	if _, err := readFrames(path, extent{applied: 3, live: true}); !errors.Is(err, ErrUnreadable) {
		t.Errorf("no files: readFrames() = %v; want ErrUnreadable", err)
	}
	if frames, err := readFrames(path, extent{applied: 3}); err != nil || len(frames) > 0 {
		t.Errorf("no files of a ledger that was closed: readFrames() = %d frames, %v; want none", len(frames), err)
	}
}

// Whatever is in the redo log, reading it ends.
func FuzzFrames(f *testing.F) {
	f.Add(slices.Concat(frame(8), frame(9)))
	f.Add(frame(8)[:40])
	f.Add(slices.Concat(block(8), frame(9)))
	f.Fuzz(func(t *testing.T, text []byte) {
		frames, _, _ := framesOf(text, 7)
		for _, rows := range append(frames, text) {
			_ = eachRow(rows, func(table, []any) error { return nil })
		}
	})
}
