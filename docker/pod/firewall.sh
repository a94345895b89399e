#!/bin/sh
# Usage: firewall.sh cut ADDRESS...      drop every packet that comes from these addresses
#        firewall.sh restore ADDRESS...  undo that
#        firewall.sh resets [ADDRESS...] answer what comes from exactly these addresses by a TCP reset
#        firewall.sh list                the cut addresses, one a line
#        firewall.sh list-resets         the addresses that are answered so, one a line
#        firewall.sh heal                undo all of it, and every shape of a link
# All rules of ours are in two chains; doing anything twice is the same as doing it once.
set -eu

chain=SPLITBRAIN
resets=SPLITBRAIN-RESETS
tool=iptables
# Kernels without nf_tables have the older interface.
if ! "$tool" --wait --list INPUT --numeric >/dev/null 2>&1; then tool=iptables-legacy; fi
rules() { "$tool" --wait "$@"; }

if ! rules --check INPUT --jump "$chain" 2>/dev/null; then
    rules --new-chain "$chain" 2>/dev/null || true
    rules --insert INPUT --jump "$chain"
fi
# Behind the cuts: what is cut gets no answer. Resets pass, so that both ends hear of it.
replace_resets() {
    {
        printf '*filter\n:%s - [0:0]\n' "$resets"
        for address in "$@"; do
            printf -- '-A %s -s %s -p tcp ! --tcp-flags RST RST -j REJECT --reject-with tcp-reset\n' \
                "$resets" "$address"
        done
        echo COMMIT
    } | "$tool-restore" --wait --noflush
    rules --check INPUT --jump "$resets" 2>/dev/null || rules --append INPUT --jump "$resets"
}

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
resets) replace_resets "$@" ;;
heal)
    rules --flush "$chain"
    if rules --flush "$resets" 2>/dev/null; then :; fi
    python3 "$(dirname "$0")/links.py" clear >/dev/null
    ;;
list) rules --list-rules "$chain" | sed -n 's/^-A .* -s \([0-9.]*\)\/32 -j DROP$/\1/p' ;;
list-resets)
    { rules --list-rules "$resets" 2>/dev/null || true; } |
        sed -n 's/^-A .* -s \([0-9.]*\)\/32 .* -j REJECT .*$/\1/p'
    ;;
*)
    echo "unknown action: $action" >&2
    exit 64
    ;;
esac
