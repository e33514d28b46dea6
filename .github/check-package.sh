#!/bin/sh
# Install a wheel or a source distribution where nothing else is, and use it as a newcomer would:
# sh .github/check-package.sh FILE [PYTHON]
set -eu
file=$(realpath "$1")
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
"${2:-python3}" -m venv "$place/venv"
bin="$place/venv/bin"
[ -d "$bin" ] || bin="$place/venv/Scripts"  # Windows
"$bin/python" -m pip install --quiet --disable-pip-version-check "${file}[local]"
cd "$place"
"$bin/python" -m pip check
"$bin/judgesmith" --version
"$bin/judgesmith" --help >help.txt
"$bin/judgesmith" demo
