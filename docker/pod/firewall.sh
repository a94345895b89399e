#!/bin/sh
# Usage: firewall.sh cut ADDRESS...      drop every packet that comes from these addresses
#        firewall.sh restore ADDRESS...  undo that
#        firewall.sh heal                undo every cut
#        firewall.sh list                the cut addresses, one a line
# All rules of ours are in one chain; doing anything twice is the same as doing it once.
set -eu

chain=SPLITBRAIN
tool=iptables
# Kernels without nf_tables have the older interface.
if ! "$tool" --wait --list INPUT --numeric >/dev/null 2>&1; then tool=iptables-legacy; fi
rules() { "$tool" --wait "$@"; }

if ! rules --check INPUT --jump "$chain" 2>/dev/null; then
    rules --new-chain "$chain" 2>/dev/null || true
    rules --insert INPUT --jump "$chain"
fi

action="$1"
shift
case "$action" in
cut)
    for address in "$@"; do
        rules --check "$chain" --source "$address" --jump DROP 2>/dev/null ||
            rules --append "$chain" --source "$address" --jump DROP
    done
    ;;
restore)
    for address in "$@"; do
        while rules --check "$chain" --source "$address" --jump DROP 2>/dev/null; do
            rules --delete "$chain" --source "$address" --jump DROP
        done
    done
    ;;
heal) rules --flush "$chain" ;;
list) rules --list-rules "$chain" | sed -n 's/^-A .* -s \([0-9.]*\)\/32 -j DROP$/\1/p' ;;
*)
    echo "unknown action: $action" >&2
    exit 64
    ;;
esac
