// Package redislog is the live log and its leases on Redis Streams: the log of many nodes.
//
// It stands between the runner, which appends, and the hub, which tails. A run is a stream whose entry ids are the
// cursors, so that Redis itself keeps entries unique, in order and without holes. What has to be decided is decided in
// scripts (scripts/*.lua), by tokens, and by deadlines that are compared with the server's clock.
//
// Threads are parted into [Groups] groups by their ids. The keys of a group share a hash tag, and so a node of a Cluster:
// the records of its leases, what is said of its threads (the news: a run has begun, a thread was deleted, somebody
// wishes to stop), and the streams of its runs. That is what lets a constant number of connections read everything: each
// node has one reader per group, a lane, which blocks on the news of the group and on the streams of those threads that
// are watched and running. A thread that is watched and idle costs nothing.
//
// A lane trusts nothing but what comes back: probes that its node writes have to arrive through it, or it is dialled
// again. Whatever it may have missed meanwhile, it finds by the ids, which are consecutive.
package redislog
