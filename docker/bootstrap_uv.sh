#!/usr/bin/env bash
# Puts the uv that requirements.lock names into .tools/uv, hashes checked.
# Exit codes: 0 done, 1 no fitting Python or no package source.
set -euo pipefail
cd "$(dirname "$0")/.."

python="${PYTHON:-python3}"
if ! "$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 15))'; then
    echo "splitbrain needs Python 3.11 to 3.14 and '$python' is none;" \
        "name one with: make PYTHON=python3.12 ..." >&2
    exit 1
fi
if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    bash docker/system_packages.sh "make virtual environments" python3-venv
fi

mkdir -p .tools
sed -n '/^uv==/,/# via/p' requirements.lock >.tools/uv.txt
if [ -x .tools/uv/bin/uv ] &&
    grep -q "^uv==$(.tools/uv/bin/uv --version | cut -d' ' -f2) " .tools/uv.txt; then
    exit 0
fi
rm -rf .tools/uv
"$python" -m venv .tools/uv
.tools/uv/bin/python -m pip install --quiet --disable-pip-version-check \
    --require-hashes --only-binary :all: --requirement .tools/uv.txt
