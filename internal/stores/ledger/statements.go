package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
)

// statements keeps what it has prepared, by its text, so that each SQL string
// can stand beside the one method that runs it.
type statements struct {
	prepare func(context.Context, string) (*sql.Stmt, error)

	mu   sync.Mutex // guards kept
	kept map[string]*sql.Stmt

	// Of the connection that writes: after a statement that failed, no other one runs
	// in the same transaction, which SQLite may have ended by itself.
	writes bool
	wrote  bool  // something was changed since clear
	bytes  int   // of bodies, since clear
	failed error // since clear
}

func newStatements(prepare func(context.Context, string) (*sql.Stmt, error)) *statements {
	return &statements{prepare: prepare, kept: map[string]*sql.Stmt{}}
}

func (s *statements) get(query string) (*sql.Stmt, error) {
	if s.failed != nil {
		return nil, s.failed
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if stmt := s.kept[query]; stmt != nil {
		return stmt, nil
	}
	// Not the caller's context: the statement outlives the call.
	stmt, err := s.prepare(context.Background(), query)
	if err != nil {
		return nil, s.note(err)
	}
	s.kept[query] = stmt
	return stmt, nil
}

// note keeps the first error of a transaction.
func (s *statements) note(err error) error {
	if s.writes && s.failed == nil {
		s.failed = err
	}
	return err
}

// clear is for a new transaction.
func (s *statements) clear() { s.wrote, s.bytes, s.failed = false, 0, nil }

func (s *statements) exec(query string, args ...any) (sql.Result, error) {
	stmt, err := s.get(query)
	if err != nil {
		return nil, err
	}
	s.wrote = true
	for _, arg := range args {
		if body, ok := arg.([]byte); ok {
			s.bytes += len(body)
		}
	}
	result, err := stmt.ExecContext(background, args...)
	return result, s.note(err)
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
		return nil, s.note(err)
	}
	list, err := drain(rows, scan)
	return list, s.note(err)
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
	return found, err == nil, s.note(err)
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

// wrap adds to an error what failed.
func wrap(err *error, what string, args ...any) {
	if *err != nil {
		*err = fmt.Errorf(what+": %w", append(args, *err)...)
	}
}
