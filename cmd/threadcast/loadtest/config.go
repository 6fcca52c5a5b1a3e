package loadtest

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/threadcast/threadcast/cmd/threadcast/client"
)

// Config says what load to make. [Defaults] returns a modest one; only URLs has to be set.
type Config struct {
	// URLs are the nodes', such as "http://127.0.0.1:8080". Viewers and requests are spread over them.
	URLs []string
	// Threads is how many threads there are, Viewers how many follow each of them, every one over a socket of its own, and
	// Runs how many runs a thread has, one after the other.
	Threads, Viewers, Runs int
	// AtOnce is how many threads run at the same time; 0 is all. The first runs begin when the viewers of as many are there.
	AtOnce int
	// Emit is what the built-in agent is asked for. Other agents do as they please.
	Emit Emit
	// Agent is the agent's id, the default agent if empty, and Message what it is told, nothing if empty.
	Agent, Message string
	// Restless is the percentage of the viewers who cut their connections, Drops times in a run at random places, and
	// resume on any node.
	Restless, Drops int
	// Stop is the percentage of the runs that are stopped at a random place.
	Stop int
	// Connect is how many connections are opened in a second; 0 is as many as can be.
	Connect int
	// Patience is for how long nothing may come before a run counts as unfinished, and how long a node may be away.
	Patience time.Duration
	// Prefix is what the ids of the threads begin with; their numbers follow. The threads have to be new. By chance if empty.
	Prefix string
	// Delete removes the threads at the end.
	Delete bool
	// Progress gets a line that tells how far it is, again and again; nil for none.
	Progress io.Writer
}

// Emit is what a run of the built-in agent consists of: so many text events, so many of them in a second (0 is as fast as
// they are taken), each of so many bytes.
type Emit struct {
	Count int     `json:"count"`
	Rate  float64 `json:"rate"`
	Bytes int     `json:"bytes"`
}

// Defaults returns a load that any machine carries, against no node.
func Defaults() Config {
	return Config{
		Threads: 10, Viewers: 3, Runs: 1, Emit: Emit{Count: 500, Rate: 50, Bytes: 150},
		Restless: 20, Drops: 2, Connect: 500, Patience: time.Minute,
	}
}

// Check refuses what cannot be meant, such as a load of no viewers, with a sentence that says what.
func (c *Config) Check() error {
	for _, u := range c.URLs {
		if err := client.CheckURL(u); err != nil {
			return err
		}
	}
	switch {
	case len(c.URLs) == 0:
		return errors.New("the URL of a node is missing")
	case c.Threads < 1 || c.Viewers < 1 || c.Runs < 1:
		return errors.New("threads, viewers and runs have to be at least 1")
	case c.Emit.Count < 0 || c.Emit.Rate < 0 || c.Emit.Bytes < 0 || c.AtOnce < 0 || c.Drops < 0 || c.Connect < 0:
		return errors.New("a number must not be negative")
	case c.Restless < 0 || c.Restless > 100 || c.Stop < 0 || c.Stop > 100:
		return errors.New("a percentage has to be between 0 and 100")
	case c.Patience <= 0:
		return errors.New("the patience has to be more than nothing")
	}
	return nil
}

// spare is how many files are open besides the sockets of the viewers: connections for requests, and those of the process.
const spare = 150

// enoughFiles tells plainly if the process may not have so many sockets.
func enoughFiles(sockets int) error {
	limit, known := openFiles()
	if !known || uint64(sockets)+spare <= limit {
		return nil
	}
	return fmt.Errorf("%d sockets at once need %d open files, and this process may have %d: raise the limit (ulimit -n %d), "+
		"or have fewer threads at once or fewer viewers", sockets, sockets+spare, limit, sockets+spare)
}
