#!/bin/sh
# Usage: kafka-node PROPERTIES CLUSTER_ID [FORMAT_OPTION...]
# Runs a controller or a broker. A broker's properties name the port at which this machine's clients
# reach it, which is known only once its container's network is there: it waits for the file.
set -eu
properties="$1"
cluster="$2"
shift 2
until [ -s "$properties" ]; do sleep 0.05; done
kafka kafka.tools.StorageTool format --ignore-formatted \
    --cluster-id "$cluster" --config "$properties" "$@"
exec kafka kafka.Kafka "$properties"
