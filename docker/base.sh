#!/usr/bin/env bash
# Usage: base.sh SEED ARCHIVE [PACKAGES...]
# Makes the root file system of a base image without any image registry: Debian bookworm with the
# packages of base/packages.txt and of further lists, as a tar archive to be imported into the
# engine. SEED is Debian with the former alone, made unless it is there: all bases begin with it.
# SPLITBRAIN_DEBIAN_MIRROR names another mirror than Debian's own.
# Exit codes: 0 made, 1 failed, 4 mmdebstrap is the user's to install.
set -euo pipefail

seed="$1"
archive="$2"
shift 2
folder="$(dirname "$0")"
# A just-in-time compiler (PostgreSQL does without one), sources of locales, a first cluster.
left_out="$(paste -sd' ' "$folder/base/left_out.txt")"

if ! command -v mmdebstrap >/dev/null; then
    bash "$folder/system_packages.sh" "make the base image" mmdebstrap debian-archive-keyring
fi

log="$(mktemp)"
trap 'rm -f "$log"' EXIT

# debian ARCHIVE [ARGUMENTS...]
debian() {
    local target="$1"
    shift
    local arguments=(
        --aptopt='Acquire::Retries "3"'
        --dpkgopt='path-exclude=/usr/share/doc/*'
        --dpkgopt='path-exclude=/usr/share/man/*'
        --dpkgopt='path-exclude=/usr/share/info/*'
        --dpkgopt='path-exclude=/usr/share/locale/*'
        --dpkgopt='path-exclude=/usr/share/lintian/*'
        "$@"
        bookworm
        "$target"
    )
    if [ -n "${SPLITBRAIN_DEBIAN_MIRROR:-}" ]; then arguments+=("$SPLITBRAIN_DEBIAN_MIRROR"); fi
    if ! mmdebstrap "${arguments[@]}" >"$log" 2>&1; then
        tail -n 30 "$log" >&2
        echo "could not make the base image's file system; the lines above say why" >&2
        exit 1
    fi
}

if [ ! -f "$seed" ]; then
    # Its lists of packages are kept for the bases.
    debian "$seed.unfinished.tar" --variant=minbase \
        --include="$(paste -sd, "$folder/base/packages.txt")" --skip=cleanup/apt \
        --customize-hook='rm -rf "$1"/var/cache/apt/archives'
    mv "$seed.unfinished.tar" "$seed"
fi
arguments=(
    --variant=custom
    --setup-hook="tar -xf '$seed' -C \"\$1\""
    # What only an installer needs, and what a container takes from its engine.
    --customize-hook='rm -rf "$1"/var/lib/apt/lists/* "$1"/var/cache/* "$1"/var/log/* "$1"/boot/*'
    --customize-hook='rm -f "$1"/etc/hostname "$1"/etc/resolv.conf'
    --customize-hook="chroot \"\$1\" sh -c 'rm -rf $left_out'"
)
if [ $# -gt 0 ]; then arguments+=(--include="$(cat "$@" | paste -sd,)"); fi
debian "$archive" "${arguments[@]}"
