package main

import (
	"context"
	"errors"
)

func restart(context.Context, *lab) ([]row, error) { return nil, errors.New("todo") }
