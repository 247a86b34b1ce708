package sandbox

import (
	"fmt"
	"strconv"
	"strings"
)

// units are the units of a size, the largest first.
var units = []struct {
	name  string
	bytes int64
}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}}

// ParseSize reads a number of bytes such as 4GiB, 512MiB or 1048576.
func ParseSize(text string) (int64, error) {
	number, factor := text, int64(1)
	for _, u := range units {
		if rest, ok := strings.CutSuffix(text, u.name); ok {
			number, factor = strings.TrimSpace(rest), u.bytes
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 0 || n > (1<<62)/factor {
		return 0, fmt.Errorf("%q is no size: write one such as 4GiB or 512MiB", text)
	}
	return n * factor, nil
}

// FormatSize writes a number of bytes as ParseSize reads it.
func FormatSize(bytes int64) string {
	for _, u := range units {
		if bytes > 0 && bytes%u.bytes == 0 {
			return strconv.FormatInt(bytes/u.bytes, 10) + u.name
		}
	}
	return strconv.FormatInt(bytes, 10) + " bytes"
}
