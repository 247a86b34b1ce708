package runner

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
)

// LiveBuilds lists the builds whose keepers answer in a directory, sorted. It changes
// nothing. A missing directory has no keepers.
func LiveBuilds(ctx context.Context, dir string) ([]string, error) {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("count keepers: %w", err)
	}
	defer root.Close()
	all, err := builds(root)
	if err != nil {
		return nil, fmt.Errorf("count keepers: %w", err)
	}
	var living []string
	for _, build := range all {
		if l, err := (keeperPaths{root, build}).dial(ctx); err == nil {
			l.conn.Close()
			living = append(living, build)
		}
	}
	slices.Sort(living)
	return living, nil
}
