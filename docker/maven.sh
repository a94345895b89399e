#!/usr/bin/env bash
# Makes sure that Maven is on PATH, which fetches the jars of images.
# Exit codes: 0 it is there, 1 the installation failed, 4 it is the user's to install.
set -euo pipefail

if command -v mvn >/dev/null; then exit 0; fi
exec bash "$(dirname "$0")/system_packages.sh" "fetch the jars of an image" maven
