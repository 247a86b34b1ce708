package main

import (
	"context"
	"errors"
)

func queues(context.Context, *lab) ([]row, error) { return nil, errors.New("todo") }
