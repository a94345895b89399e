#!/usr/bin/env bash
# Makes sure that a container engine answers: the one there is; else, as root on Debian or Ubuntu
# and under CI=true, docker.io from apt and a detached dockerd. Elsewhere it says what to do and
# touches nothing. Needs `make setup` before it (it asks through the library that runs use).
#
# Exit codes: 0 an engine answers, 1 installing or starting it failed, 4 it is the user's to do.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly log=/var/log/splitbrain-dockerd.log
readonly patience_s=90

answers() { .venv/bin/python -m splitbrain.runtimes.docker.engine "$@"; }

wait_for_answer() {
    local deadline=$((SECONDS + $1))
    until answers --quiet; do
        if [ "$SECONDS" -ge "$deadline" ]; then return 1; fi
        sleep 0.5
    done
}

if answers --quiet; then exit 0; fi

if [ "${CI:-}" != true ] || [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
    answers || true
    cat >&2 <<'TEXT'
Runs in containers need a Docker engine (20.10 or newer) that you may talk to.
  none installed?   Debian, Ubuntu: sudo apt-get install docker.io iptables
                    elsewhere: see the engine's own installation pages
  not running?      sudo systemctl start docker
  not permitted?    sudo usermod -aG docker "$USER", then log in again
  somewhere else?   set DOCKER_HOST
As root on Debian or Ubuntu, CI=true make engine installs and starts one.
TEXT
    exit 4
fi

packages=(docker.io iptables iproute2 ca-certificates)
if ! grep -q ' cgroup' /proc/mounts; then packages+=(cgroupfs-mount); fi
if ! command -v dockerd >/dev/null; then
    bash docker/system_packages.sh "run containers" "${packages[@]}"
fi
if ! grep -q ' cgroup' /proc/mounts; then cgroupfs-mount; fi

# The package's own service may be on its way up already, or may be kept from starting.
if [ -d /run/systemd/system ] && systemctl start docker; then
    if wait_for_answer "$patience_s"; then exit 0; fi
elif wait_for_answer 3; then
    exit 0
fi

echo "starting dockerd, log in $log"
# No descriptor of ours may stay open in it: whoever waits for our output would wait for ever.
setsid --fork dockerd >>"$log" 2>&1 </dev/null 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-
if ! wait_for_answer "$patience_s"; then
    tail -n 30 "$log" >&2
    echo "dockerd did not answer within $patience_s s; its last lines are above" >&2
    exit 1
fi
