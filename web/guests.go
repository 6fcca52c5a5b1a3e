package web

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

// guest is a connection that stays: a socket, or a stream of server-sent events.
type guest interface {
	// goAway tells the client to come back: to another node, or to this one once it is up again. It may take its time.
	goAway()
	// cut ends the connection at once. It does not block.
	cut()
}

// guests are the connections of a server, until they are shown out.
type guests struct {
	leaving atomic.Bool // nobody is let in any more
	mu      sync.Mutex
	in      map[guest]struct{}
	all     sync.WaitGroup
}

// enter counts a guest in, unless the server drains.
func (g *guests) enter(who guest) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.leaving.Load() {
		return false
	}
	if g.in == nil {
		g.in = map[guest]struct{}{}
	}
	g.in[who] = struct{}{}
	g.all.Add(1)
	return true
}

// leave counts a guest out, who entered.
func (g *guests) leave(who guest) {
	g.mu.Lock()
	delete(g.in, who)
	g.mu.Unlock()
	g.all.Done()
}

// sockets returns how many of them are sockets.
func (g *guests) sockets() (n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for who := range g.in {
		if _, ok := who.(*session); ok {
			n++
		}
	}
	return n
}

// showOut lets nobody in any more, asks all who are there to go, and cuts those who are left when ctx is done. It returns
// when all are gone.
func (g *guests) showOut(ctx context.Context) {
	g.mu.Lock()
	g.leaving.Store(true)
	there := slices.Collect(maps.Keys(g.in))
	g.mu.Unlock()
	for _, who := range there {
		go who.goAway()
	}
	gone := make(chan struct{})
	go func() {
		g.all.Wait()
		close(gone)
	}()
	select {
	case <-gone:
	case <-ctx.Done():
		g.cutAll()
		<-gone
	}
}

// cutAll cuts those who are there: one who has gone may have left its connection to another request.
func (g *guests) cutAll() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for who := range g.in {
		who.cut()
	}
}
