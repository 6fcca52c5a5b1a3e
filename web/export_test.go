package web

import "github.com/threadcast/threadcast/persistence/thread"

// Ticket returns a join token of a kind, as the routes that hand them out do.
func (s *Server) Ticket(kind string, id thread.ID, run thread.RunID) string {
	return s.tickets.issue(grant{User: "u", Kind: kind, Thread: id, RunID: run})
}

// ClosingOf returns what closes a finished run for a client that is in the middle of it.
var ClosingOf = closingOf

// Pipelines returns how many pipelines are remembered, and how many of them have no socket.
func (s *Server) Pipelines() (all, resting int) {
	s.pipelines.mu.Lock()
	defer s.pipelines.mu.Unlock()
	return len(s.pipelines.byNonce), s.pipelines.idle
}

// Acknowledged tells whether everything that was sent to the pipeline of a token has arrived.
func (s *Server) Acknowledged(token string) bool {
	body, err := s.tickets.read(token)
	if err != nil {
		return false
	}
	p := s.pipelines.find(body.Nonce)
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.joined && p.sent == p.arrived
}
