#!/usr/bin/env bash
# Build the Dockerfile, unchanged, where Debian's packages and PyPI can be reached but no registry of images. As root:
#   apt-get install buildah debootstrap
#   tests/containers/offline_build.sh [buildah's options, such as --build-arg TORCH=cuda]
# Debian's own Python 3.11 takes the place of the image python:3.11-slim, and pip finds torch among downloaded wheels.
# The image is encore: podman run --rm encore, or buildah push encore oci-archive:encore.tar.
set -euo pipefail
clone=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if ! buildah inspect --type image localhost/python:3.11-slim >/dev/null 2>&1; then
    debootstrap --variant=minbase --include=ca-certificates,python3-pip,python3-venv bookworm "$work/base"
    chroot "$work/base" apt-get clean
    rm -rf "$work"/base/var/lib/apt/lists/* "$work"/base/usr/lib/python3*/EXTERNALLY-MANAGED
    ln -s python3 "$work/base/usr/bin/python"
    printf '%s\n' 'Dir::Cache { pkgcache ""; srcpkgcache ""; };' 'APT::Keep-Downloaded-Packages "false";' \
        >"$work/base/etc/apt/apt.conf.d/as-in-images"
    base=$(buildah from scratch)
    buildah add -q "$base" "$work/base" / >/dev/null
    buildah commit -q --rm "$base" localhost/python:3.11-slim
    rm -rf "$work/base"
fi

torch=$(sed -n 's/.*"\(torch==[^"]*\)".*/\1/p' "$clone/pyproject.toml")
pip download -q -d "$work/wheels" --python-version 3.11 --only-binary=:all: "$torch"
index=$(pip config get global.index-url 2>/dev/null || true)
printf '[global]\nfind-links = /wheels\nretries = 0\n%s\n' "${index:+index-url = $index}" >"$work/pip.conf"

git clone -q "$clone" "$work/clone"
buildah build --isolation chroot --network host --pull-never -t encore "$@" \
    -v "$work/wheels:/wheels:ro" -v "$work/pip.conf:/etc/pip.conf:ro" -v /etc/ssl/certs:/etc/ssl/certs:ro "$work/clone"
