#!/usr/bin/env bash
# Generates the Python code beside every .proto file, with the grpcio-tools that pyproject.toml pins.
set -euo pipefail
cd "$(dirname "$0")"
find fairwall -name '*_pb2.py' -o -name '*_pb2.pyi' -o -name '*_pb2_grpc.py' | xargs -r rm -f
"${PYTHON:-python}" -m grpc_tools.protoc -I . --python_out=. --pyi_out=. --grpc_python_out=. $(find fairwall -name '*.proto' | sort)
# A .proto without a service needs no stubs.
find fairwall -name '*_pb2_grpc.py' | while read -r stub; do
  grep -q 'class .*Stub' "$stub" || rm "$stub"
done
