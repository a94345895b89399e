#!/bin/sh
# Usage: zookeeper-node CONFIGURATION NUMBER [PROPERTY...]
# Runs a server; notes its number in the folder of its data in its first life.
set -eu
configuration="$1"
number="$2"
shift 2
folder="$(sed -n 's/^dataDir=//p' "$configuration")"
mkdir -p "$folder"
[ -s "$folder/myid" ] || echo "$number" > "$folder/myid"
# A quick start counts for more here than the last tenth of throughput.
exec java -Xms64m -Xmx128m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xshare:auto \
    -XX:+ExitOnOutOfMemoryError -Dlogback.configurationFile=/opt/zookeeper/logback.xml \
    "$@" -cp '/opt/zookeeper/jars/*' \
    org.apache.zookeeper.server.quorum.QuorumPeerMain "$configuration"
