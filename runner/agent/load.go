package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	_ "unsafe" // for go:linkname
)

// load is a request for events in numbers; see [Demo].
type load struct {
	Count int     `json:"count"`
	Rate  float64 `json:"rate"`  // events a second; 0 is as fast as they are taken
	Bytes int     `json:"bytes"` // of each event
	Hold  bool    `json:"hold"`
}

const (
	maxLoadCount  = 10_000_000
	maxLoadRate   = 1_000_000
	maxLoadBytes  = 1 << 20
	usualLoadSize = 150
)

// readLoad returns the load that forwardedProps ask for, or nil.
func readLoad(forwarded json.RawMessage) (*load, error) {
	var props struct {
		Emit json.RawMessage `json:"emit"`
	}
	if json.Unmarshal(forwarded, &props) != nil || props.Emit == nil || string(props.Emit) == "null" {
		return nil, nil //nolint:nilerr // something else is forwarded, for somebody else
	}
	var l load
	dec := json.NewDecoder(bytes.NewReader(props.Emit))
	dec.DisallowUnknownFields()
	if dec.Decode(&l) != nil {
		return nil, errors.New("forwardedProps.emit is not of the form {count, rate, bytes, hold}")
	}
	switch {
	case l.Count < 0 || l.Count > maxLoadCount:
		return nil, fmt.Errorf("forwardedProps.emit.count is not between 0 and %d", maxLoadCount)
	case l.Rate < 0 || l.Rate > maxLoadRate:
		return nil, fmt.Errorf("forwardedProps.emit.rate is not between 0 and %d", maxLoadRate)
	case l.Bytes < 0 || l.Bytes > maxLoadBytes:
		return nil, fmt.Errorf("forwardedProps.emit.bytes is not between 0 and %d", maxLoadBytes)
	case l.Bytes == 0:
		l.Bytes = usualLoadSize
	}
	return &l, nil
}

// makeLoad sends the events of a load in one message.
func makeLoad(ctx context.Context, v *voice, q question) error {
	id, err := v.open(ctx)
	if err != nil {
		return err
	}
	quoted, err := encode(id)
	if err != nil {
		return fmt.Errorf("encode the message id: %w", err)
	}
	head := fmt.Sprintf(`{"type":"TEXT_MESSAGE_CONTENT","messageId":%s,"delta":"#`, quoted)
	padding := strings.Repeat("a run belongs to its thread and not to a socket, ", q.load.Bytes/49+1)
	start := time.Now()
	for i := range q.load.Count {
		if err := pace(ctx, start, i, q.load.Rate); err != nil {
			return err
		}
		if err := v.emit(loadEvent(head, padding, i, q.load.Bytes)); err != nil {
			return err
		}
	}
	if q.load.Hold {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	return v.close(ctx, id)
}

// pace waits until event i is due.
func pace(ctx context.Context, start time.Time, i int, rate float64) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if rate == 0 {
		return nil
	}
	due := start.Add(time.Duration(float64(i) / rate * float64(time.Second)))
	return wait(ctx, time.Until(due))
}

// loadEvent returns event i, stamped now, in a slice of its own.
func loadEvent(head, padding string, i, size int) []byte {
	const tail, marker = `"}`, 48
	e := make([]byte, 0, max(size, len(head)+marker))
	e = append(e, head...)
	e = strconv.AppendInt(e, int64(i), 10)
	e = append(e, '@')
	e = strconv.AppendInt(e, nanotime(), 10)
	e = append(e, ';')
	if room := size - len(e) - len(tail); room > 0 {
		e = append(e, padding[:room]...)
	}
	return append(e, tail...)
}

// nanotime is the clock behind [time.Since], on Linux CLOCK_MONOTONIC. Package time does not show its reading, and
// a measurement needs it, because it is the only clock that another process on the host shares.
//
//go:linkname nanotime runtime.nanotime
func nanotime() int64
