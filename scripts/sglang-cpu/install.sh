#!/usr/bin/env bash
# A real SGLang server on a CPU, in a virtual environment of its own beside this file. Downloads about 1 GB once.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
python="${PYTHON:-python3.11}"

[ -x "$here/.venv/bin/python" ] || "$python" -m venv "$here/.venv"
pip="$here/.venv/bin/python -m pip --disable-pip-version-check install --quiet"
# The last release that needs no compiled kernels; without its dependencies, which are CUDA packages.
$pip --no-deps sglang==0.5.13.post1
$pip torch==2.13.0+cpu
$pip --no-deps torchvision==0.28.0
# xgrammar and others would replace torch by a CUDA build: the constraint keeps it.
echo "torch==2.13.0+cpu" >"$here/.venv/constraints.txt"
$pip --constraint "$here/.venv/constraints.txt" --requirement "$here/requirements.txt"
cp "$here/sitecustomize.py" "$here/lean_attention.py" "$("$here/.venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/"
SGLANG_USE_CPU_ENGINE=1 "$here/.venv/bin/python" -c 'import sglang, torch, torchvision; print("SGLang", sglang.__version__, "on torch", torch.__version__)'
