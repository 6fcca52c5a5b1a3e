package web

import (
	"net/http"
	"strconv"

	"github.com/labstack/echo/v4"

	"github.com/threadcast/threadcast/hub"
	"github.com/threadcast/threadcast/persistence/thread"
	"github.com/threadcast/threadcast/web/wire"
)

// getEvents answers with a page of a thread's events after a cursor: the same batches, with the same coordinate,
// that a socket gets.
func (a api) getEvents(c echo.Context) error {
	t, err := a.known(c)
	if err != nil {
		return err
	}
	n, err := limit(c, 500, 10_000)
	if err != nil {
		return err
	}
	var opts hub.Options
	if c.QueryParams().Has("after") {
		if opts.After, err = thread.ParseCursor(c.QueryParam("after")); err != nil {
			return err
		}
	}
	if opts.Replay, err = parseReplay(c.QueryParam("replay")); err != nil {
		return err
	}
	if opts.Discarded, err = parseDiscarded(c.QueryParam("discarded")); err != nil {
		return err
	}
	batches, more, err := a.Hub.Read(c.Request().Context(), t.ID, opts, n)
	if err != nil {
		return err
	}
	return c.JSONBlob(http.StatusOK, appendPage(nil, opts.After, batches, more))
}

func appendPage(dst []byte, cursor thread.Cursor, batches []hub.Batch, more bool) []byte {
	dst = append(dst, `{"batches":[`...)
	for i, b := range batches {
		if i > 0 {
			dst = append(dst, ',')
		}
		cursor = b.To
		if b.Kind == hub.Reset {
			dst = append(dst, `{"reset":true,`...)
			dst = append(dst, wire.AppendReset(nil, string(b.RunID), b.From.String())[1:]...)
			continue
		}
		dst = wire.Events{
			RunID: string(b.RunID), From: b.From.String(), To: b.To.String(), Replay: true, Events: b.Events,
		}.Append(dst)
	}
	dst = append(dst, `],"cursor":"`...)
	dst = cursor.Append(dst)
	dst = append(dst, `","more":`...)
	dst = strconv.AppendBool(dst, more)
	return append(dst, '}')
}
