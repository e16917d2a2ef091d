#!/usr/bin/env bash
# Installs everything with each Python that fairwall's classifiers name and PATH has, plays the demo and runs the tests:
#
#     scripts/pythons.sh [ARGUMENTS OF PYTEST, such as -n 2 tests/unit]
#
# Without arguments, the default tests. PYTHONS="python3.13" tries that one alone. The environments are in build/.
set -euo pipefail
cd "$(dirname "$0")/.."
unset PYTHONDONTWRITEBYTECODE # else each of the tests' thousand processes would compile all code again
[ $# -gt 0 ] || set -- -n 3 --dist worksteal
ran=""
for python in ${PYTHONS:-python3.11 python3.12 python3.13}; do
    if ! "$python" --version 2>/dev/null; then
        echo "$python is not here" >&2
        continue
    fi
    environment=build/$python
    [ -x "$environment/bin/python" ] || "$python" -m venv "$environment"
    "$environment/bin/python" -m pip --disable-pip-version-check install --quiet -e '.[training,release,dev]'
    "$environment/bin/fairwall" run demo --trials 1 --out "$environment/runs"
    "$environment/bin/python" -m pytest -p no:cacheprovider "$@"
    ran="$ran $python"
done
[ -n "$ran" ] || exit 1
echo "passed with$ran"
