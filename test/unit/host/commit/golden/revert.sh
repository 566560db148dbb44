#!/bin/sh
# Written by kubeletadm before it changes kubelet files; removed when the change is confirmed.
#   revert timer      restores the previous files
#   revert boot       the same after a reboot; runs before the kubelet
#   revert confirm ID keeps the new files
#   revert record ID  marks the change as rolled back in the history of the host
LC_ALL=C; export LC_ALL; umask 077
R=${KUBELETADM_ROOT-}; R=${R%/}
D=$R/var/lib/kubeletadm; C=$D/commit; V=$D/reverting; S=$R/etc/systemd/system; U=kubeletadm-revert
H=$R/var/log/kubeletadm/history.jsonl

flush() { sync -- "$@" 2>/dev/null || sync; }
hold() {
  if ! command -v flock >/dev/null; then return 0; fi
  m=$R/run/kubeletadm.mutex; (if [ ! -d "${m%/*}" ]; then mkdir -p -- "${m%/*}"; fi; umask 077; : >>"$m") || return 1
  exec 9<"$m"; i=0
  until flock -n 9 9<&9; do
    i=$((i + 1)); if [ $i -ge 60 ]; then echo "another kubeletadm process has locked $m for a minute" >&2; return 1; fi; sleep 1
  done
}
entry() { sed -n "s/^$1 //p" "$2/record" 2>/dev/null; }
stat_of() { stat -c '%a %u %g' -- "$1"; }
sum_of() { sha256sum <"$1"; }

# The units are removed before the script: a unit without its script would fail at every boot.
disarm() {
  if [ "$how" != boot ]; then systemctl stop "$U.timer" 2>/dev/null; fi
  rm -f -- "$S/kubelet.service.wants/$U-boot.service" "$S/$U.timer" "$S/$U.service" "$S/$U-boot.service"
  rmdir -- "$S/kubelet.service.wants" 2>/dev/null
  flush "$S"
  # systemd keeps the Wants= of the boot unit until it is reloaded.
  case $(systemctl show kubelet -p Wants 2>/dev/null) in *"$U"*) systemctl daemon-reload;; esac
  # The record of an older revert is removed first, so that it cannot be mistaken for this change.
  if [ -d "$D/confirmed" ] && [ -d "$D/reverted" ]; then rm -rf -- "$D/reverted" && flush "$D"; fi
  rm -rf -- "$D/new" "$D/confirmed" "$D/revert"
  rmdir -- "$D" 2>/dev/null
  flush "$R/var/lib"
}

# Recorded before the first file is restored: only then the kubelet is restarted.
touched() { if [ ! -e "$V/touched" ]; then : >"$V/touched" && flush "$V/touched" "$V"; fi; }

no_leftovers() { rm -f -- "${1%/*}/.${1##*/}.kubeletadm".*; }

put_file() { # COPY PATH
  no_leftovers "$2"
  if [ -f "$2" ] && [ ! -L "$2" ] && [ "$(stat_of "$1")" = "$(stat_of "$2")" ] && [ "$(sum_of "$1")" = "$(sum_of "$2")" ]; then return 0; fi
  touched || return 1
  d=${2%/*}; read -r u </proc/sys/kernel/random/uuid; t=$d/.${2##*/}.kubeletadm.${u%%-*}${u##*-}
  mkdir -p -- "$d" || return 1
  if ! { (set -C; : >"$t") && cp -p -- "$1" "$t" && flush "$t" && mv -f -- "$t" "$2"; }; then rm -f -- "$t"; return 1; fi
  if [ -z "$R" ] && command -v restorecon >/dev/null; then restorecon -- "$2" 2>/dev/null; fi
  flush "$d"
}

put_link() { # COPY PATH
  l=$(cat -- "$1")
  if [ -L "$2" ] && [ "$(readlink -- "$2")" = "$l" ]; then return 0; fi
  touched && rm -f -- "$2" && ln -s -- "$l" "$2" && flush "${2%/*}"
}

put_directory() { # MODE OWNER PATH
  if [ "$(stat -c '%a %u:%g' -- "$3")" = "$1 $2" ]; then return 0; fi
  touched && mkdir -p -- "$3" && chmod -- "$1" "$3" && chown -- "$2" "$3" && flush "$3"
}

put_nothing() { # PATH
  if [ -d "${1%/*}" ]; then no_leftovers "$1"; fi
  if [ ! -L "$1" ] && { [ ! -e "$1" ] || [ -d "$1" ]; }; then return 0; fi
  touched && rm -f -- "$1" && flush "${1%/*}"
}

# The managers of a running kubelet would overwrite their restored state, with which the previous kubelet exits.
stop_writers() {
  if [ "$how" = boot ] || ! grep -q '_manager_state$' "$V/manifest"; then return 0; fi
  touched && systemctl stop kubelet
}

# Removes a directory created by the change, if it is empty.
drop_directory() { if [ -d "$1" ] && rmdir -- "$1" 2>/dev/null; then flush "${1%/*}"; fi; }

put_back() {
  while IFS='|' read -r kind a b path; do
    case $kind in
      f) put_file "$V/files/$a" "$R$path";;
      l) put_link "$V/files/$a" "$R$path";;
      d) put_directory "$a" "$b" "$R$path";;
      a) put_nothing "$R$path";;
    esac || { echo "cannot restore $path" >&2; return 1; }
  done <"$V/manifest"
  sed -n 's/^[an]|||//p' "$V/manifest" | sort -r | while IFS= read -r path; do drop_directory "$R$path"; done
}

put_units_back() {
  if grep -q '^r|' "$V/manifest"; then systemctl daemon-reload; fi
  while IFS='|' read -r kind a b unit; do
    if [ "$kind" != u ]; then continue; fi
    if [ "$b" = disabled ] && [ "$(systemctl is-enabled "$unit" 2>/dev/null)" = enabled ]; then systemctl --quiet disable "$unit"; fi
    if [ "$how" = boot ]; then continue; fi
    case $a in inactive|failed|unknown|'') systemctl stop "$unit";; *) systemctl restart "$unit";; esac || echo "trouble systemctl could not restore the state of $unit" >>"$V/record"
  done <"$V/manifest"
}

# All created and removed names are on disk before the copies are deleted.
keep_new() {
  set -- "$S"
  if [ -d "$S/multi-user.target.wants" ]; then set -- "$@" "$S/multi-user.target.wants"; fi
  while IFS='|' read -r kind a b path; do
    case $kind in f|l|d|a|n) if [ -d "$R${path%/*}" ]; then set -- "$@" "$R${path%/*}"; fi;; esac
  done <"$C/manifest"
  flush "$@"
}

say_why() {
  if [ -s "$V/why" ]; then cat -- "$V/why"
  elif [ "$how" = boot ]; then echo 'the host was restarted before the change was confirmed'
  else echo "the change was not confirmed within $(entry timeout "$V") s"; fi
}

# The entry is the one of the start of the change. A copy replaces the file only when it is complete.
record() {
  if [ ! -f "$H" ] || [ -L "$H" ]; then return 0; fi
  t=${H%/*}/.${H##*/}.kubeletadm.revert
  sed '/"id":"'"$1"'-/s/"result":"started"/"result":"rolled-back"/' "$H" >"$t" && flush "$t" && mv -f -- "$t" "$H" || rm -f -- "$t"
}

# The rollback is complete by now. A file system that does not answer delays its end by ten seconds.
record_rollback() {
  i=$(entry id "$D/reverted")
  case $i in ''|*[!A-Za-z0-9-]*) return 0;; esac
  if command -v timeout >/dev/null; then timeout -s KILL 10 sh "$D/revert" record "$i"; else record "$i"; fi >/dev/null 2>&1
  return 0
}

revert() {
  if [ ! -d "$V" ]; then
    if [ ! -d "$C" ]; then record_rollback; disarm; return 0; fi
    mv -- "$C" "$V" && flush "$D" || return 1
  fi
  # Sets the current boot: the kubelet restart below starts the boot unit, which must then do nothing.
  if [ "$how" != boot ]; then sed "s/^boot .*/boot $(cat /proc/sys/kernel/random/boot_id)/" "$V/record" >"$V/record.new" && flush "$V/record.new" && mv -f -- "$V/record.new" "$V/record" || return 1; fi
  stop_writers || return 1
  put_back || return 1
  if [ -e "$V/touched" ]; then put_units_back; fi
  printf 'why %s\nat %s\n' "$(say_why)" "$(date +%s)" >>"$V/record"
  rm -rf -- "$D/reverted" && flush "$V/record" && mv -- "$V" "$D/reverted" && flush "$D" || return 1
  rm -rf -- "$D/reverted/files" "$D/reverted/manifest"
  record_rollback
  disarm
}

how=$1
case $how in
  confirm)
    if [ ! -d "$C" ] && [ "$(entry id "$D/confirmed")" = "$2" ]; then disarm; exit 0; fi
    if [ "$(entry id "$C")" != "$2" ]; then exit 3; fi
    rm -rf -- "$D/confirmed"
    keep_new
    mv -- "$C" "$D/confirmed" && flush "$D" || exit 3
    disarm
    exit 0;;
  boot)
    now=$(cat /proc/sys/kernel/random/boot_id)
    for x in "$V" "$C" "$D/new"; do if [ -d "$x" ] && [ "$(entry boot "$x")" = "$now" ]; then exit 0; fi; done
    n=0; until revert; do
      n=$((n + 1)); if [ $n -ge 3 ]; then systemctl --no-block start "$U.timer"; exit 1; fi
      sleep 1
    done;;
  timer) hold || :; revert;;
  record) record "$2";;
  *) echo "usage: revert timer|boot|confirm ID|record ID" >&2; exit 2;;
esac
