#!/usr/bin/env bash
# Usage: system_packages.sh PURPOSE PACKAGE...
# Installs Debian packages where nobody is surprised by it: as root, on Debian or Ubuntu, CI=true.
# Anywhere else it says in plain words what to install.
# Exit codes: 0 installed (or there), 1 the installation failed, 4 it is the user's to install.
set -euo pipefail

purpose="$1"
shift

missing=()
for package in "$@"; do
    if [ "$(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null)" != installed ]; then
        missing+=("$package")
    fi
done
if [ "${#missing[@]}" -eq 0 ] && command -v dpkg-query >/dev/null; then
    exit 0
fi

if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null || [ "${CI:-}" != true ]; then
    echo "To $purpose this machine needs: $*." >&2
    echo "On Debian or Ubuntu: sudo apt-get install $*" >&2
    echo "(As root under CI=true this is done without asking.)" >&2
    exit 4
fi

export DEBIAN_FRONTEND=noninteractive
log="$(mktemp)"
trap 'rm -f "$log"' EXIT
attempt() {
    # A package list that one of the machine's other sources could not refresh is no reason to stop.
    apt-get -q -o Acquire::Retries=3 update || true
    apt-get -q -o Acquire::Retries=3 -o DPkg::Lock::Timeout=120 \
        install --yes --no-install-recommends "${missing[@]}"
}
echo "installing ${missing[*]} to $purpose"
if ! attempt >"$log" 2>&1 && ! attempt >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    echo "could not install ${missing[*]} to $purpose; the lines above say why" >&2
    exit 1
fi
