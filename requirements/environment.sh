#!/bin/sh
# Creates the virtual environment $1 with the first Python of at least 3.11 that is found.
# PYTHON=/path/to/python chooses one. Leaves nothing behind when it fails.
set -eu
venv=$1

recent='import sys; sys.exit(sys.version_info < (3, 11))'
python=
for candidate in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11 python}; do
    if "$candidate" -c "$recent" >/dev/null 2>&1; then
        python=$candidate
        break
    fi
done
if [ -z "$python" ]; then
    found=$("${PYTHON:-python3}" --version 2>&1 | head -n 1) || found="no python3"
    echo "bitlane needs Python 3.11 or later and found $found: install one, or name it with make PYTHON=..." >&2
    exit 1
fi
if ! "$python" -c 'import ensurepip, venv' >/dev/null 2>&1; then
    echo "$python cannot make environments: install its venv module (Debian, Ubuntu: apt install python3-venv)" >&2
    exit 1
fi

echo "== Creating $venv with $("$python" --version)"
rm -rf "$venv"
"$python" -m venv "$venv" || {
    rm -rf "$venv"
    exit 1
}
