#!/bin/sh
# Runs within the machine that GRUB boots, once, while its disk is made. The host ran the older kernel when the newer one
# came: so does this one at its first boot, and only then.
set -eu
grub-install --target=i386-pc /dev/vda
update-grub
older=$(cat /srv/older)
menu=/boot/grub/grub.cfg
submenu=$(sed -n "s/^submenu .*menuentry_id_option '\([^']*\)'.*/\1/p" $menu)
entry=$(sed -n "s/.*menuentry_id_option '\(gnulinux-$older-advanced-[^']*\)'.*/\1/p" $menu)
grub-reboot "$submenu>$entry"
