#!/bin/sh
# Usage: zookeeper-node CONFIGURATION NUMBER FIRST_SNAPSHOT [PROPERTY...]
# Runs a server; notes its number in the folder of its data in its first life.
set -eu
configuration="$1"
number="$2"
first_snapshot="$3"
shift 3
folder="$(sed -n 's/^dataDir=//p' "$configuration")"

# ZooKeeper does not flush its first snapshot, and does not start again once there are transactions
# and no snapshot. Its log is opened after the snapshot was written.
flush_first_snapshot() {
    until ls "$folder"/version-2/log.* > /dev/null 2>&1; do sleep 0.05; done
    sync "$folder"/version-2/snapshot.* "$folder/version-2"
}

if [ ! -s "$folder/myid" ]; then
    mkdir -p "$folder"
    echo "$number" > "$folder/myid"
    if [ "$first_snapshot" = flushed ]; then flush_first_snapshot & fi
fi
# A quick start counts for more here than the last tenth of throughput.
exec java -Xms64m -Xmx128m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xshare:auto \
    -XX:+ExitOnOutOfMemoryError -Dlogback.configurationFile=/opt/zookeeper/logback.xml \
    "$@" -cp '/opt/zookeeper/jars/*' \
    org.apache.zookeeper.server.quorum.QuorumPeerMain "$configuration"
