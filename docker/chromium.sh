#!/usr/bin/env bash
# Makes sure that there is a browser for tests/browser: chromium or Chrome on PATH.
# Exit codes: 0 there is one, 1 the installation failed, 4 it is the user's to install.
set -euo pipefail

for name in chromium chromium-browser google-chrome; do
    if command -v "$name" >/dev/null; then
        exit 0
    fi
done
exec bash "$(dirname "$0")/system_packages.sh" "open reports in a browser" chromium
