#!/bin/bash
# master | worker SPARK_URL [OPTION...] | any other command. Each answers on its own address in the
# network of its container, on no other.
set -euo pipefail
read -r address _ < <(hostname -I)
export SPARK_LOCAL_IP="$address"
case "$1" in
master)
  exec "$SPARK_HOME/bin/spark-class" org.apache.spark.deploy.master.Master \
    --host "$address" --port 7077 --webui-port 8080
  ;;
worker)
  url="$2"
  shift 2
  exec "$SPARK_HOME/bin/spark-class" org.apache.spark.deploy.worker.Worker \
    --host "$address" --work-dir /tmp/work "$@" "$url"
  ;;
*)
  exec "$@"
  ;;
esac
