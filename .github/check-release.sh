#!/bin/sh
# Whether a tag may be released: it names the version of pyproject.toml, and CHANGELOG.md says what is new in it.
#   sh .github/check-release.sh v0.2.0
set -eu
tag=${1:?usage: sh .github/check-release.sh TAG}
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' pyproject.toml)
if [ "$tag" != "v$version" ]; then
  echo "not released: the tag is $tag, the version of pyproject.toml is $version" >&2
  exit 1
fi
awk -v start="## [$version] - " '
  /^## / { inside = index($0, start) == 1 && $0 ~ / - [0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]$/ }
  inside && /^- [^ ]/ { said = 1 }
  END { exit !said }
' CHANGELOG.md || { echo "not released: CHANGELOG.md has no “## [$version] - YEAR-MONTH-DAY” with a change under it" >&2; exit 1; }
