#!/bin/sh
# Usage: patroni-node CONFIG_FOLDER DATA_FOLDER ETCD_URL...
# Runs a member of etcd and Patroni, which runs the server. The member is root's: a server that finds
# the number of a process of its own user in its old lock file takes it for another server.
set -eu
config="$1" data="$2"
shift 2
mkdir -p "$data"
chown postgres:postgres "$data"
# A container that starts has no server yet.
rm -f "$data/data/postmaster.pid"

etcd --config-file "$config/etcd.yml" &
member="$!"
if [ ! -e "$data/data" ]; then
    # Patroni ends where etcd's members have not agreed on a version yet.
    for url in "$@"; do
        until python3 -c 'import sys, urllib.request
with urllib.request.urlopen(sys.argv[1] + "/version", timeout=1) as answer:
    sys.exit(b"not_decided" in answer.read())' "$url" 2>/dev/null; do
            sleep 0.2
        done
    done
fi
setpriv --reuid=postgres --regid=postgres --clear-groups patroni "$config/patroni.yml" &
patroni="$!"
trap 'kill -TERM "$patroni"' TERM INT
code=0
wait "$patroni" || code="$?"
# A signal ends the wait, not Patroni.
while kill -0 "$patroni" 2>/dev/null; do
    code=0
    wait "$patroni" || code="$?"
done
kill -TERM "$member" 2>/dev/null || true
exit "$code"
