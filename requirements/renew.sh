#!/bin/sh
# Pins, with the hashes of every platform's files, what pyproject.toml allows. Needs uv.
set -eu
cd "$(dirname "$0")/.."
command -v uv >/dev/null || {
    echo "uv is missing: pip install uv" >&2
    exit 1
}

pin() {
    file=requirements/$1.txt
    shift
    uv pip compile --quiet --universal --python-version 3.11 --upgrade --generate-hashes \
        --no-emit-index-url --no-emit-find-links --no-emit-package cppsim --no-header "$@" pyproject.toml \
        --output-file "$file.new" >/dev/null
    { echo "# Written by make pins: what bitlane is tested with."; cat "$file.new"; } >"$file"
    rm "$file.new"
    echo "wrote $file"
}

# The largest set first: the others take their versions from it.
pin dev --extra demo --extra readback --extra plot --extra completion \
    --extra onnxruntime --extra dask --extra report --extra litex --group dev
pin test --extra demo --extra serial --extra plot --extra completion \
    --extra onnx --extra dask --extra report --group test --constraints requirements/dev.txt
pin demo --extra demo --group build --constraints requirements/dev.txt
pin compiler --extra compiler --constraints requirements/dev.txt
