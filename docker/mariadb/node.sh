#!/bin/bash
# Usage: mariadb-node CONFIG_FOLDER DATA_FOLDER [first]
# Runs a server, which refuses to be root, with the configuration of its folder. At the very first
# start the first node makes the cluster; the others, and whoever lost its files, copy a member's.
# When all members had died at once they make the cluster again once all are back (pc.recovery);
# when the last of them was stopped in good order, it says so in grastate.dat, and begins alone.
set -euo pipefail
config="$1/server.cnf" data="$2/data" unfinished="$2/unfinished"
# Outlives the data: a first node that lost them must not make a second cluster.
began=/var/lib/mysql/began
mkdir -p "$2"
chown mysql:mysql "$2"

as_mysql() {
    setpriv --reuid=mysql --regid=mysql --init-groups "$@"
}

arguments=()
if [ "${3:-}" = first ] && [ ! -e "$began" ]; then
    if [ ! -e "$data" ]; then
        rm -rf "$unfinished"
        mariadb-install-db --no-defaults --datadir="$unfinished" --user=mysql --skip-test-db \
            --auth-root-authentication-method=normal --skip-name-resolve \
            --innodb-log-file-size=16M \
            --extra-file=/usr/local/lib/mariadb-node/first.sql >/dev/null
        # Elsewhere first, so that a kill leaves no half.
        mv "$unfinished" "$data"
        sync "$2"
    fi
    if [ ! -e "$data/gvwstate.dat" ]; then
        arguments+=(--wsrep-new-cluster)
    fi
    touch "$began"
elif [ ! -e "$data" ]; then
    as_mysql mkdir "$data"
elif grep -q '^safe_to_bootstrap: 1' "$data/grastate.dat" 2>/dev/null; then
    arguments+=(--wsrep-new-cluster)
fi

if [ -e "$data/ibdata1" ]; then
    # A server that died does not know its place: its storage does.
    log="$(mktemp)"
    chown mysql:mysql "$log"
    as_mysql mariadbd --defaults-file="$config" --wsrep-recover --log-error="$log" || true
    cat "$log" >&2
    place="$(sed -n 's/.*WSREP: Recovered position: *//p' "$log" | tail -n 1)"
    rm -f "$log"
    if [ -n "$place" ]; then
        arguments+=("--wsrep-start-position=$place")
    fi
fi
exec setpriv --reuid=mysql --regid=mysql --init-groups \
    mariadbd --defaults-file="$config" "${arguments[@]}"
