#!/bin/sh
# Runs inside the tree of the machine that GRUB boots, while it is made: the archive's newest cloud kernel and one before
# it, headers for the older alone. Those of the newer lie in an apt repository on the machine's own disk, which from then
# on is its only one: what is installed later does not depend on what an archive still has.
set -eu
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8
flavour=cloud-amd64
newer=$(apt-cache depends "linux-image-$flavour" | sed -n 's/^ *Depends: linux-image-//p' | head -n 1)
older=$(apt-cache pkgnames linux-image-6 | sed -n "s/^linux-image-\\(6.*+deb13[.0-9]*-$flavour\\)\$/\\1/p" \
    | { cat; echo "$newer"; } | sort -uV | grep -B 1 -Fx "$newer" | head -n 1)
if [ "$older" = "$newer" ]; then
    # An archive with one cloud kernel: the other flavour sorts before it, for GRUB as for sort.
    older=$(apt-cache depends linux-image-amd64 | sed -n 's/^ *Depends: linux-image-//p' | head -n 1)
fi
apt-get -qy install --no-install-recommends "linux-image-$newer" "linux-image-$older" "linux-headers-$older"

mkdir /srv/archive
apt-get -qy install --no-install-recommends --download-only -o Dir::Cache::Archives=/srv/archive "linux-headers-$newer"
cd /srv/archive
rm -rf lock partial
for package in *.deb; do
    dpkg-deb --field "$package"
    echo "Filename: ./$package"
    echo "Size: $(stat -c %s "$package")"
    echo "SHA256: $(sha256sum "$package" | cut -d ' ' -f 1)"
    echo
done >Packages
rm -f /etc/apt/sources.list /etc/apt/sources.list.d/*
echo 'deb [trusted=yes] file:/srv/archive ./' >/etc/apt/sources.list.d/archive.list
echo 'Acquire::Languages "none";' >/etc/apt/apt.conf.d/lab

printf '%s\n' "$older" >/srv/older
printf '%s\n' "$newer" >/srv/newer
echo 'LABEL=root / ext4 defaults 0 1' >/etc/fstab
mkdir -p /etc/default/grub.d
cat >/etc/default/grub.d/lab.cfg <<'END'
GRUB_TIMEOUT=1
GRUB_CMDLINE_LINUX_DEFAULT=""
GRUB_CMDLINE_LINUX="console=ttyS0"
GRUB_TERMINAL=serial
END
