package runner

// A runner does several things, each a type of its own on the same ground.
type (
	// acceptor turns requests into runs.
	acceptor struct{ *Runner }
	// line lets requests wait, and starts them when their turn comes.
	line struct{ *Runner }
	// scribe writes runs into log and history, and reads them back.
	scribe struct{ *Runner }
	// reclaimer ends what an owner left that went away.
	reclaimer struct{ *Runner }
)

func (r *Runner) acceptor() acceptor   { return acceptor{r} }
func (r *Runner) line() line           { return line{r} }
func (r *Runner) scribe() scribe       { return scribe{r} }
func (r *Runner) reclaimer() reclaimer { return reclaimer{r} }
