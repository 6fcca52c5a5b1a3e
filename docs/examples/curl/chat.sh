#!/bin/sh
# Asks, hangs up in mid answer, comes back, and prints the events once each:
#
#     sh chat.sh [http://127.0.0.1:8080]
set -eu
server=${1:-http://127.0.0.1:8080}
thread=curl-$(date +%s)-$$
here=$(mktemp -d)
trap 'rm -r "$here"' EXIT

# A RunAgentInput, as AG-UI has it. The run has a name, so that asking again would find it and start nothing.
cat > "$here/input" <<INPUT
{"threadId": "$thread", "runId": "r1", "state": {}, "tools": [], "context": [], "forwardedProps": {},
 "messages": [{"id": "m1", "role": "user", "content": "Write at length"}]}
INPUT

# Whole frames only: a connection that was cut may end within one.
frames() { awk '/^id: /{id=$2} /^data: /{data=substr($0,7)} /^$/{if (data!="") print id "\t" data; data=""}' "$1"; }

# The beginning of the answer. That curl leaves does not stop the run.
curl -sN --max-time "${SECONDS_BEFORE_LEAVING:-2}" "$server/agui/demo" \
  -H 'Content-Type: application/json' -d @"$here/input" > "$here/first" || true
frames "$here/first"

# All that followed, up to the end, from the last position that came.
last=$(frames "$here/first" | tail -n 1 | cut -f 1)
echo "left after $last" >&2
curl -sN "$server/agui/threads/$thread/events?replay=raw&until=idle" -H "Last-Event-ID: $last" > "$here/rest"
frames "$here/rest"
