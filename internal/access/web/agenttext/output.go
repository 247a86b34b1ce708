package agenttext

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"strings"

	"mailboxd/internal/cli/view"
	"mailboxd/internal/running/runner"
	"mailboxd/internal/stores/dirtree"
)

// mostOutput is how much of the output of a run a page shows.
const mostOutput = 32 << 10

// Output returns the end of the output of a run, for people; "" for none.
func Output(dir string) string {
	if dir == "" {
		return ""
	}
	var text bytes.Buffer
	copyEnds(view.NewSetupLog(&text), filepath.Join(dir, runner.SetupFile))
	show := view.NewTranscript(&text)
	copyEnds(show, filepath.Join(dir, runner.StdoutFile))
	_ = show.Close()
	copyEnds(&text, filepath.Join(dir, runner.StderrFile))
	return plainEnd(text.String())
}

// How much is read of the beginning of an output, which tells the program that wrote it, and of
// the end.
const (
	mostBegin = 64 << 10
	mostEnd   = 4 << 20
)

// copyEnds copies whole lines of a file, as far as it can be read: all of them, or those of its
// beginning and its end.
func copyEnds(to io.Writer, path string) {
	file, err := dirtree.OpenRegular(path)
	if err != nil {
		return
	}
	defer file.Close()
	lines := bufio.NewReader(file)
	if info, err := file.Stat(); err == nil && info.Size() > mostBegin+mostEnd {
		begin, _ := io.ReadAll(io.LimitReader(file, mostBegin))
		_, _ = to.Write(begin[:bytes.LastIndexByte(begin, '\n')+1])
		_, _ = io.WriteString(to, "[...]\n")
		if _, err := file.Seek(-mostEnd, io.SeekEnd); err != nil {
			return
		}
		for err = bufio.ErrBufferFull; errors.Is(err, bufio.ErrBufferFull); { // the rest of a line
			_, err = lines.ReadSlice('\n')
		}
	}
	_, _ = io.Copy(to, io.LimitReader(lines, mostEnd+mostBegin))
}

// plainEnd returns the end of a text, with carriage returns as ends of lines.
func plainEnd(text string) string {
	text = LineEnds.Replace(text)
	if len(text) > mostOutput {
		text = text[len(text)-mostOutput:]
		_, text, _ = strings.Cut(text, "\n")
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

// LineEnds replaces the ends of lines of other systems, and carriage returns.
var LineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n")
