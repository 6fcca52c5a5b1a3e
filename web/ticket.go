package web

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/threadcast/threadcast/persistence/thread"
)

// What a ticket is for.
const (
	ticketRun     = "run"     // one run, by the client that began it
	ticketConnect = "connect" // what a thread holds and what follows
	ticketList    = "list"    // changes of a user's threads
)

const (
	pipeTicket = time.Minute     // how long the ticket of a pipeline may wait for its first use
	listTicket = 24 * time.Hour  // how long the ticket of a list may be used
	clockSkew  = 5 * time.Minute // by which the clocks of two nodes may differ
)

// Why a ticket does not let anybody in. The texts say nothing of the ticket itself.
var (
	errNoTicket    = errors.New("this socket takes a join_token, which the answer to run, connect or subscribe brings")
	errTicket      = errors.New("the join_token is not valid here; ask for a new one")
	errTicketSpent = errors.New("the join_token has been used and what it began cannot go on here; ask for a new one")
)

// grant is what a ticket allows whoever brings it.
type grant struct {
	User   thread.User  `json:"u,omitempty"`
	Kind   string       `json:"k"` // "run", "connect" or "list"
	Thread thread.ID    `json:"t,omitempty"`
	RunID  thread.RunID `json:"r,omitempty"` // of run; of connect, the run that was active
	Code   string       `json:"c,omitempty"` // joinCode, of list
}

// ticketBody is what a ticket says, before its signature.
type ticketBody struct {
	grant
	Nonce  string `json:"n"`
	Expiry int64  `json:"e"`           // in milliseconds of Unix time
	Boot   string `json:"b,omitempty"` // the process, where no other knows which tickets were used
}

// issuer hands out tickets, and takes them back.
type issuer struct {
	secret []byte
	used   Tickets
	boot   string // names this process in tickets that no other takes; else empty
}

// newIssuer returns one for [Parti.secret] and [Parts.Tickets].
func newIssuer(secret []byte, used Tickets) issuer {
	i := issuer{secret: secret, used: used}
	if secret == nil {
		i.secret = []byte(rand.Text() + rand.Text())
	}
	if used == nil {
		i.used, i.boot = new(usedTickets), rand.Text()
	}
	return i
}

// issue returns a join token for g: a signed text of the base64url alphabet, that every node with the same [Parti.secret]
// takes. One of a pipeline is good for a minute and for one socket, which it may resume; one of a list for a day.
func (i issuer) issue(g grant) string {
	life := pipeTicket
	if g.Kind == ticketList {
		life = listTicket
	}
	body := ticketBody{grant: g, Nonce: rand.Text(), Expiry: time.Now().Add(life).UnixMilli()}
	if g.Kind != ticketList {
		body.Boot = i.boot
	}
	text, err := json.Marshal(body)
	if err != nil {
		panic(err) // strings and a number
	}
	return base64.RawURLEncoding.EncodeToString(append(text, i.sign(text)...))
}

func (i issuer) sign(text []byte) []byte {
	mac := hmac.New(sha256.New, i.secret)
	mac.Write(text)
	return mac.Sum(nil)
}

// read returns what a join token says, whether it may still be used or not; errTicket if nobody here signed it.
func (i issuer) read(token string) (ticketBody, error) {
	var body ticketBody
	text, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil || len(text) <= sha256.Size {
		return body, errTicket
	}
	text, mac := text[:len(text)-sha256.Size], text[len(text)-sha256.Size:]
	if !hmac.Equal(mac, i.sign(text)) || json.Unmarshal(text, &body) != nil {
		return body, errTicket
	}
	return body, nil
}

func (b ticketBody) expires() time.Time { return time.UnixMilli(b.Expiry) }

// claim takes a ticket of a pipeline for this socket, the first that brings it.
func (i issuer) claim(ctx context.Context, b ticketBody) error {
	left := time.Until(b.expires())
	if b.Boot != i.boot || left <= 0 {
		return errTicket
	}
	ctx, cancel := look(ctx)
	defer cancel()
	first, err := i.used.Claim(ctx, b.Nonce, left+clockSkew)
	switch {
	case err != nil:
		return fmt.Errorf("claim a join_token: %w", err)
	case !first:
		return errTicketSpent
	}
	return nil
}

// Tickets notes which tickets have been used.
type Tickets interface {
	// Claim notes the use of a ticket for at least ttl, and tells whether it is the first, among all nodes.
	Claim(ctx context.Context, nonce string, ttl time.Duration) (first bool, err error)
}

// usedTickets are the tickets that this process has seen. It is safe for concurrent use.
type usedTickets struct {
	mu    sync.Mutex
	until map[string]time.Time // by nonce
	sweep time.Time            // when those that have expired are forgotten
}

// Claim never fails.
func (u *usedTickets) Claim(_ context.Context, nonce string, ttl time.Duration) (bool, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := time.Now()
	if u.until == nil {
		u.until = map[string]time.Time{}
	}
	if now.After(u.sweep) {
		for n, end := range u.until {
			if now.After(end) {
				delete(u.until, n)
			}
		}
		u.sweep = now.Add(time.Minute)
	}
	if now.Before(u.until[nonce]) {
		return false, nil
	}
	u.until[nonce] = now.Add(ttl)
	return true, nil
}
