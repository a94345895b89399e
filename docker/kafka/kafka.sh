#!/bin/sh
# Usage: kafka CLASS [ARGUMENT...]
# Starts one of Kafka's programs. KAFKA_HEAP is its heap in MiB, LOG_LEVEL its log's level and
# NETWORK_LOG_LEVEL that of the requests that it sends.
set -eu
heap="${KAFKA_HEAP:-64}"
# Listed in one order everywhere: the cache of classes is for this class path alone.
jars="$(printf '%s:' /opt/kafka/jars/*.jar)"
classes=/opt/kafka/classes.aot
[ ! -e "$classes" ] || set -- "-XX:AOTCache=$classes" '-Xlog:aot*=off' "$@"
# A quick start counts for more here than the last tenth of throughput.
exec java "-Xms${heap}m" "-Xmx${heap}m" -XX:+UseSerialGC -XX:TieredStopAtLevel=1 \
    -XX:+ExitOnOutOfMemoryError -Dlog4j2.configurationFile=/opt/kafka/log4j2.xml \
    -Dlog4j.configuration=file:/opt/kafka/log4j.properties "-DLOG_LEVEL=${LOG_LEVEL:-INFO}" \
    "-DNETWORK_LOG_LEVEL=${NETWORK_LOG_LEVEL:-INFO}" \
    -cp "$jars" "$@"
