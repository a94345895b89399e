#!/bin/sh
# Usage: rabbitmq-node
# Runs a broker as its variables say; the cookie by which the nodes trust each other has to be a file
# of its user's alone.
set -eu
mkdir -p "$HOME" "$RABBITMQ_MNESIA_BASE"
cookie="$HOME/.erlang.cookie"
[ -s "$cookie" ] || { echo splitbrain > "$cookie"; chmod 400 "$cookie"; }
exec /usr/lib/rabbitmq/bin/rabbitmq-server
