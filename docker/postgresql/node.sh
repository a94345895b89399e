#!/bin/sh
# Usage: postgresql-node CONFIG_FOLDER DATA_FOLDER [PRIMARY_HOST PRIMARY_PORT NAME]
# Runs a server, which refuses to be root, with the configuration of its folder. At the first start
# its files are made, or copied from the primary: elsewhere first, so that a kill leaves no half.
set -eu
bin="$(echo /usr/lib/postgresql/*/bin)"
config="$1" data="$2/data" unfinished="$2/unfinished"
mkdir -p "$2"
chown postgres:postgres "$2"

as_postgres() {
    setpriv --reuid=postgres --regid=postgres --clear-groups "$@"
}

if [ ! -e "$data" ]; then
    rm -rf "$unfinished"
    if [ "$#" -eq 2 ]; then
        as_postgres "$bin/initdb" --pgdata="$unfinished" --username=postgres --auth=trust \
            --encoding=UTF8 --locale=C.UTF-8 --wal-segsize=1 >/dev/null
    else
        # A primary that does not listen yet is no reason to give up.
        until as_postgres "$bin/pg_basebackup" --pgdata="$unfinished" --write-recovery-conf \
            --checkpoint=fast --wal-method=stream \
            --dbname="host=$3 port=$4 user=postgres application_name=$5"; do
            rm -rf "$unfinished"
            sleep 0.2
        done
    fi
    mv "$unfinished" "$data"
    sync "$2"
fi

setpriv --reuid=postgres --regid=postgres --clear-groups "$bin/postgres" -D "$data" \
    -c config_file="$config/postgresql.conf" -c hba_file="$config/pg_hba.conf" &
server="$!"
# SIGTERM would have the server wait until its last client leaves.
trap 'kill -INT "$server"' TERM INT
code=0
wait "$server" || code="$?"
# A signal ends the wait, not the server.
while kill -0 "$server" 2>/dev/null; do
    code=0
    wait "$server" || code="$?"
done
exit "$code"
