#!/bin/sh
# Usage: kafka-node PROPERTIES [CLUSTER_ID [FORMAT_OPTION...]]
# Runs a controller or a broker; formats its folder in its first life, unless there is no cluster id
# (brokers on ZooKeeper get theirs from there). A broker's properties name
# the port at which this machine's clients reach it, which is known only once its container's
# network is there: it waits for the file.
set -eu
properties="$1"
cluster="${2:-}"
shift $(($# < 2 ? $# : 2))
# The first process of a container ignores what it has no handler for.
trap 'exit 143' TERM
until [ -s "$properties" ]; do sleep 0.05; done
folder="$(sed -n 's/^log\.dirs=//p' "$properties")"
if [ -n "$cluster" ] && [ ! -e "$folder/meta.properties" ]; then
    kafka kafka.tools.StorageTool format --cluster-id "$cluster" --config "$properties" "$@"
    # It flushes nothing: a node whose power is cut soon after would find an empty file and never
    # start again.
    sync -f "$folder"
fi
exec kafka kafka.Kafka "$properties"
