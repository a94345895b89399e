#!/bin/sh
# Makes the database at the first start, then is the server.
set -eu
base=/var/lib/postgresql/data/base
programs=$(echo /usr/lib/postgresql/*/bin)
as_postgres="setpriv --reuid postgres --regid postgres --clear-groups"
mkdir -p /run/postgresql
chown postgres /run/postgresql /var/lib/postgresql/data
if [ ! -e "$base/done" ]; then
    rm -rf "$base"
    printf %s "$POSTGRES_PASSWORD" >/tmp/password
    chown postgres /tmp/password
    $as_postgres "$programs/initdb" -D "$base" -U "${POSTGRES_USER:-postgres}" \
        --pwfile=/tmp/password --auth=scram-sha-256 >/dev/null
    echo "host all all all scram-sha-256" >>"$base/pg_hba.conf"
    if [ -n "${POSTGRES_USER:-}" ]; then
        echo "CREATE DATABASE $POSTGRES_USER" |
            $as_postgres "$programs/postgres" --single -D "$base" postgres >/dev/null
    fi
    touch "$base/done"
fi
program=$1
shift
exec $as_postgres "$programs/$program" -D "$base" -c "listen_addresses=*" "$@"
