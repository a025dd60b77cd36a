#!/bin/sh
# Run .ci/run in a fresh clone of HEAD with an empty HOME and empty caches, as on a new machine.
# Usage: fresh_clone.sh FOLDER. FOLDER gets the seconds of each module of tests, and an empty file
# named by the commit if all passed.
set -eu
commit=$(git rev-parse HEAD)
mkdir -p "$1"
place=$(mktemp -d "$(cd "$1" && pwd)/clone.XXXXXX")
trap 'rm -rf "$place"' EXIT
trap 'exit 130' INT TERM
git clone --quiet . "$place/bitlane"
git -C "$place/bitlane" checkout --quiet --detach "$commit"
mkdir "$place/home"
unset XDG_CACHE_HOME BITLANE_CACHE CPPSIM_CACHE MAKEFLAGS MFLAGS MAKELEVEL
HOME="$place/home" "$place/bitlane/.ci/run"
cp "$place/bitlane/build/ci/durations.json" "$1"
touch "$1/$commit"
echo "passed: $commit"
