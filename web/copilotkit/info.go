package copilotkit

// Info is the answer to /info. It states nothing about a licence of CopilotKit, which threadcast cannot know.
type Info struct {
	Version         string          `json:"version"`
	Mode            string          `json:"mode"` // "intelligence", which is over WebSockets, or "sse"
	Agents          map[string]Card `json:"agents"`
	Intelligence    *Sockets        `json:"intelligence,omitempty"` // with that mode
	Suggestions     bool            `json:"suggestions"`
	ThreadEndpoints Endpoints       `json:"threadEndpoints"`
	SingleRoute     SingleRoute     `json:"singleRoute"`
}

// Card says what a client shows of an agent.
type Card struct {
	Description string `json:"description"`
}

// Sockets says where a client finds its sockets.
type Sockets struct {
	URL string `json:"wsUrl"`
}

// Endpoints says what the thread routes can do.
type Endpoints struct {
	List      bool `json:"list"`
	Inspect   bool `json:"inspect"`
	Mutations bool `json:"mutations"`
	Realtime  bool `json:"realtimeMetadata"`
}

// SingleRoute says what a client may do that sends all its requests to one address.
type SingleRoute struct {
	Resources       bool      `json:"resourceOperations"`
	ThreadEndpoints Endpoints `json:"threadEndpoints"`
}

// NewInfo describes a server with these agents. sockets is the base URL of its sockets; an empty one makes clients use SSE.
func NewInfo(agents []string, sockets string) Info {
	can := Endpoints{List: true, Inspect: true, Mutations: true, Realtime: sockets != ""}
	info := Info{
		Version: "1", Mode: "sse", Agents: map[string]Card{}, Suggestions: true, ThreadEndpoints: can,
		SingleRoute: SingleRoute{Resources: true, ThreadEndpoints: can},
	}
	for _, id := range agents {
		info.Agents[id] = Card{}
	}
	if sockets != "" {
		info.Mode, info.Intelligence = "intelligence", &Sockets{URL: sockets}
	}
	return info
}

// Credentials are the answer to run and connect of a client that uses sockets: where it finds the stream.
type Credentials struct {
	ThreadID  string   `json:"threadId"`
	RunID     string   `json:"runId,omitempty"` // with connect: the active run, if there is one, so that it can be stopped
	JoinToken string   `json:"joinToken"`
	Realtime  Realtime `json:"realtime"`
}

// Realtime is a socket, without /websocket, and the topic to join on it.
type Realtime struct {
	ClientURL string `json:"clientUrl"`
	Topic     string `json:"topic"`
}
