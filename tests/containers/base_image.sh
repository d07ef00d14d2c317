#!/bin/sh
# base_image.sh NAME: makes the base of berth's image from Debian's packages, for an engine that
# reaches no registry. Needs root and debootstrap. It has what the Dockerfile asks of its base,
# python and pip, and of this machine what pip needs to reach its index: the certificates that are
# trusted here, and pip's configuration. So it is for tests, not to be pushed.
set -eu
name=$1
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT

debootstrap --variant=minbase --include=ca-certificates,python3,python3-venv,python3-pip \
  trixie "$root" ${DEBIAN_MIRROR:+"$DEBIAN_MIRROR"}
ln -s python3 "$root/usr/bin/python"
# Debian's own guard against pip beside apt: here nobody uses apt any more.
rm -f "$root"/usr/lib/python3.*/EXTERNALLY-MANAGED
rm -rf "$root"/var/cache/apt/* "$root"/var/lib/apt/lists/* "$root"/usr/share/doc/* \
  "$root"/usr/share/man/* "$root"/usr/share/locale/*
for file in /etc/ssl/certs/ca-certificates.crt /etc/pip.conf; do
  [ ! -f "$file" ] || install -m 0644 "$file" "$root$file"
done
tar -C "$root" -c . | docker import - "$name"
