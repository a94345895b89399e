#!/bin/sh
# Does nothing until told to stop, at once; reaps what programs started beside it leave behind.
set -eu
trap 'exit 0' TERM INT
while :; do
    sleep 86400 &
    wait "$!" || true
done
