package web

import (
	"encoding/base64"
	"net/http"
	"strings"
)

// authProtocol is what the subprotocol begins with in which phoenix.js carries a token.
const authProtocol = "base64url.bearer.phx."

// withCredentials returns r with the token that a client brought in a subprotocol or in the query, where browsers cannot set
// a header, as if it had come in the header Authorization. One that has the header is returned as it is.
func withCredentials(r *http.Request) *http.Request {
	if r.Header.Get("Authorization") != "" {
		return r
	}
	token := protocolToken(r)
	if token == "" {
		token = r.URL.Query().Get("token")
	}
	if token == "" {
		return r
	}
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+token)
	return r
}

// protocolToken returns the token among the subprotocols that a client offers; empty if there is none. phoenix.js writes it in
// the standard alphabet without padding, whatever the name of the subprotocol says; all alphabets are read.
func protocolToken(r *http.Request) string {
	for _, header := range r.Header.Values("Sec-WebSocket-Protocol") {
		for offer := range strings.SplitSeq(header, ",") {
			text, ok := strings.CutPrefix(strings.TrimSpace(offer), authProtocol)
			if !ok {
				continue
			}
			text = strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(text, "="))
			if token, err := base64.RawStdEncoding.DecodeString(text); err == nil && printable(token) {
				return string(token)
			}
		}
	}
	return ""
}

// printable tells whether a token may stand in a header.
func printable(token []byte) bool {
	for _, c := range token {
		if c < 0x20 || c == 0x7f {
			return false
		}
	}
	return true
}
