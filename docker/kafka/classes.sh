#!/bin/sh
# Usage: kafka-classes
# Starts a node once, while the image is built, and leaves a cache of the classes that it loaded:
# Java's package comes without one, and then a node reads and checks thousands of classes anew each
# time that it starts.
set -eu
folder="$(mktemp -d)"
cat > "$folder/server.properties" << END
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:9093
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=PLAINTEXT
log.dirs=$folder/log
log.cleaner.dedupe.buffer.size=4194304
END
export KAFKA_HEAP=160
JDK_JAVA_OPTIONS="-XX:AOTCacheOutput=$folder/classes.aot" \
    kafka-node "$folder/server.properties" q1Sh-9_ISia_zwGINzRvyQ > "$folder/output" 2>&1 &
node=$!
looks=0
until grep -q "Kafka Server started" "$folder/output"; do
    # A node that neither starts nor ends must not hold up a build for ever.
    if [ "$looks" = 3000 ] || ! kill -0 "$node"; then cat "$folder/output"; exit 1; fi
    looks=$((looks + 1))
    sleep 0.1
done
kill "$node"
wait "$node" || true
mv "$folder/classes.aot" /opt/kafka/classes.aot || { cat "$folder/output"; exit 1; }
rm -r "$folder"
