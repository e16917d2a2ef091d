#!/usr/bin/env bash
# Fails if the checked-in Python code is not what the .proto files generate.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
copy="$(mktemp -d)"
trap 'rm -rf "$copy"' EXIT
cp -r "$here/fairwall" "$here/generate.sh" "$copy"
"$copy/generate.sh"
diff -r --exclude=__pycache__ "$here/fairwall" "$copy/fairwall"
