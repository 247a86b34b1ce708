package index

import (
	"context"
	"database/sql"
	"errors"
	"sync"
)

// statements keeps what it has prepared, by its text, so that each SQL string stands beside
// the one method that runs it.
type statements struct {
	prepare func(ctx context.Context, query string) (*sql.Stmt, error)
	instead func() (*Reader, error) // may return who answers instead; nil: nobody

	mu   sync.Mutex // guards kept
	kept map[string]*sql.Stmt
}

func newStatements(prepare func(context.Context, string) (*sql.Stmt, error)) *statements {
	return &statements{prepare: prepare, kept: map[string]*sql.Stmt{}}
}

func (s *statements) get(query string) (*sql.Stmt, error) {
	if s.instead != nil {
		if r, err := s.instead(); err != nil || r != nil {
			if err == nil {
				return r.read.get(query)
			}
			return nil, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if stmt := s.kept[query]; stmt != nil {
		return stmt, nil
	}
	stmt, err := s.prepare(context.Background(), query) // it outlives the call
	if err != nil {
		return nil, err
	}
	s.kept[query] = stmt
	return stmt, nil
}

func (s *statements) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, stmt := range s.kept {
		errs = append(errs, stmt.Close())
	}
	clear(s.kept)
	return errors.Join(errs...)
}

// A row is what a scan function reads its columns from.
type row interface{ Scan(dest ...any) error }

// all runs a query and returns what scan makes of each row.
func all[T any](ctx context.Context, s *statements, scan func(row) (T, error), query string, args ...any) ([]T, error) {
	stmt, err := s.get(query)
	if err != nil {
		return nil, err
	}
	rows, err := stmt.QueryContext(ctx, args...)
	if err != nil {
		return nil, err
	}
	return drain(rows, scan)
}

// first runs a query and reports whether it had a row.
func first[T any](ctx context.Context, s *statements, scan func(row) (T, error), query string, args ...any) (T, bool, error) {
	var zero T
	stmt, err := s.get(query)
	if err != nil {
		return zero, false, err
	}
	found, err := scan(stmt.QueryRowContext(ctx, args...))
	if errors.Is(err, sql.ErrNoRows) {
		return zero, false, nil
	}
	return found, err == nil, err
}

func drain[T any](rows *sql.Rows, scan func(row) (T, error)) (list []T, err error) {
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		item, err := scan(rows)
		if err != nil {
			return nil, err
		}
		list = append(list, item)
	}
	return list, rows.Err()
}

// one scans a row that has a single column.
func one[T any](r row) (v T, err error) {
	err = r.Scan(&v)
	return v, err
}
