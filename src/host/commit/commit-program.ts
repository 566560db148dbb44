import { COMMIT_DIRECTORY, MUTEX_FUNCTION, REVERT_SCRIPT, REVERT_UNIT } from './revert-script.ts';

/** Exit code for a refused operation; stdout contains the record with the reason. */
export const REFUSED_EXIT = 75;

/** Exit code if systemd no longer starts the revert because the host is shutting down. The next boot reverts. */
export const SHUTDOWN_EXIT = 76;

/** Lock file: one writer per host. Deleted by a reboot. */
export const LOCK_FILE = '/run/kubeletadm.lock';

/**
 * The lock file is created atomically with a hard link. It expires with the boot in which it was taken, and
 * after its TTL, which is measured by the uptime. Its modification time is that of the holder's last
 * `lock_take`.
 */
export const LOCK_FUNCTIONS = `
lock_holder() { h=; if [ -f "$L" ]; then { read -r h && h=\${h#id }; } <"$L"; fi 2>/dev/null; }
lock_take() {
  L=$R${LOCK_FILE}; n=$L.$T; read -r b </proc/sys/kernel/random/boot_id; read -r up _ </proc/uptime; up=\${up%%.*}
  if [ ! -d "\${L%/*}" ]; then mkdir -p -- "\${L%/*}" || return 1; fi
  fresh "$n" || return 1
  printf 'id %s\\nowner %s\\nprocess %s\\nmachine %s\\nboot %s\\nends %s\\nseconds %s\\n' "$1" "$4" "$5" "$6" "$b" $((up + $2)) "$2" >>"$n" || return 1
  i=0
  until ln -- "$n" "$L" 2>/dev/null; do
    lock_holder
    if [ "$h" = "$1" ]; then mv -f -- "$n" "$L"; return; fi
    if [ -e "$L" ]; then
      e=$(sed -n 's/^ends //p' "$L"); o=$(sed -n 's/^boot //p' "$L")
      if [ "$3" != any ] && [ "$3" != "$h" ] && [ "$o" = "$b" ] && [ "\${e:-0}" -ge "$up" ]; then cat -- "$L"; printf 'since %s\\nleft %s\\n' "$(stat -c %Y -- "$L")" $((e - up)); rm -f -- "$n"; return ${REFUSED_EXIT}; fi
      # Only one process may remove a stale lock, and only while it is still the same lock.
      g=$h
      if mkdir -- "$L.break" 2>/dev/null; then lock_holder; if [ "$h" = "$g" ]; then rm -f -- "$L"; fi; rmdir -- "$L.break"; else sleep 1; fi
    fi
    i=$((i + 1))
    if [ $i = 10 ]; then rmdir -- "$L.break" 2>/dev/null; fi
    if [ $i -ge 20 ]; then ln -- "$n" "$L"; rm -f -- "$n"; return 1; fi
  done
  rm -f -- "$n"
}
lock_release() { L=$R${LOCK_FILE}; lock_holder; if [ "$h" = "$1" ]; then rm -f -- "$L"; fi; }
`.trimStart();

/** Shell functions that check, confirm or revert a change. */
export const COMMIT_FUNCTIONS = `
${MUTEX_FUNCTION}entry() { sed -n "s/^$1 //p" "$2" 2>/dev/null; }
commit_state() {
  for s in reverting commit reverted; do
    if [ -f "$D/$s/record" ]; then printf 'state %s\\n' "$s"; cat -- "$D/$s/record"; return; fi
  done
  echo 'state none'
}
commit_check() {
  D=$R${COMMIT_DIRECTORY}
  if [ "$(entry id "$D/commit/record")" = "$1" ]; then return 0; fi
  commit_state; return ${REFUSED_EXIT}
}
commit_confirm() {
  D=$R${COMMIT_DIRECTORY}
  if [ -f "$D/revert" ] && sh "$D/revert" confirm "$1"; then return 0; fi
  commit_state; return ${REFUSED_EXIT}
}
commit_revert() {
  D=$R${COMMIT_DIRECTORY}; s=$D/commit; if [ -d "$D/reverting" ]; then s=$D/reverting; fi
  if [ "$(entry id "$s/record")" != "$1" ]; then commit_state; return ${REFUSED_EXIT}; fi
  (umask 077; printf '%s\\n' "$2" >"$s/why") 2>/dev/null
  if ! systemctl start ${REVERT_UNIT}.service; then
    case $(systemctl is-system-running 2>/dev/null) in stopping) return ${SHUTDOWN_EXIT};; esac
    return 1
  fi
  if [ "$(entry id "$D/reverted/record")" != "$1" ]; then commit_state; return ${REFUSED_EXIT}; fi
}
`.trimStart();

/**
 * In addition to COMMIT_FUNCTIONS; uses the shared functions of every program (`at`, `below`, `flush`, `$R`).
 * Order: the cleanup at the next boot (script, units, link of the boot unit), the copies, one rename that
 * arms the revert, the timer. Changes begin only when the timer runs; each step is on disk before the next
 * one begins. A change that already waits for its confirmation is joined: the first copy of each file is
 * kept.
 */
export const ARM_FUNCTIONS = `
boot_id() { cat /proc/sys/kernel/random/boot_id; }
commit_unit() { cat >"$S/$1" && chmod 644 -- "$S/$1" && flush "$S/$1"; }
commit_install() {
  (umask 022; mkdir -p -- "$S" "\${D%/*}") && mkdir -p -- "$D" && chmod 700 -- "$D" && flush "\${D%/*}" && cat >"$D/revert.new" <<'EOF_REVERT' && flush "$D/revert.new" && mv -f -- "$D/revert.new" "$D/revert" && flush "$D" || return 1
${REVERT_SCRIPT}EOF_REVERT
  commit_units
}
commit_link() {
  w=$S/kubelet.service.wants; mkdir -p -- "$w" && chmod 755 -- "$w" && ln -sf "../$1" "$w/$1" && flush "$w" "$S"
}
commit_note() {
  if cut -d'|' -f4- <"$N/manifest.new" | grep -qxF -- "$4"; then return 0; fi
  printf '%s|%s|%s|%s\\n' "$1" "$2" "$3" "$4" >>"$N/manifest.new"
}
commit_keep() {
  c=$I-$k; k=$((k + 1))
  if [ -f "$p" ]; then cp -p -- "$p" "$N/files/$c" && flush "$N/files/$c" && commit_note f "$c" '' "\${p#"$R"}"
  elif [ -d "$p" ]; then commit_note d "$(stat -c %a -- "$p")" "$(stat -c %u:%g -- "$p")" "\${p#"$R"}"
  elif [ -e "$p" ]; then echo "$p: neither a file nor a directory" >&2; return 1
  else
    d=\${p%/*}; commit_note a '' '' "\${p#"$R"}" || return 1
    while [ -n "\${d#"$R"}" ] && [ ! -e "$d" ]; do commit_note n '' '' "\${d#"$R"}" && d=\${d%/*} || return 1; done
  fi
}
commit_path() {
  below "$1" || return 1
  if [ -L "$p" ]; then
    c=$I-$k; k=$((k + 1))
    readlink -- "$p" >"$N/files/$c" && flush "$N/files/$c" && commit_note l "$c" '' "\${p#"$R"}" && at "$1" || return 1
  fi
  commit_keep
}
commit_checkpoint() {
  commit_record "$N" || return 1
  if [ -f "$N/manifest" ]; then cat -- "$N/manifest" >"$N/manifest.new"; else : >"$N/manifest.new"; fi || return 1
  k=0
  for f in "$@"; do if [ "$f" != -- ]; then commit_path "$f" || return 1; continue; fi; break; done
  while [ "$1" != -- ]; do shift; done; shift
  for f in "$@"; do
    commit_note u "$(systemctl is-active "$f" 2>/dev/null)" "$(systemctl is-enabled "$f" 2>/dev/null)" "$f" || return 1
  done
  if [ "$W" = 1 ]; then commit_note r '' '' '' || return 1; fi
  flush "$N/manifest.new" "$N/files" && mv -f -- "$N/manifest.new" "$N/manifest" && flush "$N"
}
commit_record() {
  printf 'id %s\\nowner %s\\narmed %s\\ntimeout %s\\nboot %s\\n' "$I" "$O" "$(date +%s)" "$T" "$(boot_id)" >"$1/record.new" && flush "$1/record.new" && mv -f -- "$1/record.new" "$1/record"
}
commit_timer() {
  case $(systemctl show ${REVERT_UNIT}.timer -p NeedDaemonReload) in *=yes) systemctl daemon-reload || return 1;; esac
  systemctl restart ${REVERT_UNIT}.timer && systemctl is-active --quiet ${REVERT_UNIT}.timer
}
commit_arm() { (
  umask 077; I=$1; T=$2; O=$3; W=$4; shift 4
  D=$R${COMMIT_DIRECTORY}; S=$R/etc/systemd/system; C=$D/commit
  if [ -d "$D/reverting" ]; then commit_state; exit ${REFUSED_EXIT}; fi
  if [ -d "$C" ]; then
    N=$C; commit_install && commit_timer && commit_checkpoint "$@" && flush "$C" && [ -d "$C" ]
    exit
  fi
  N=$D/new
  if commit_install && rm -rf -- "$N" "$D/confirmed" && mkdir -- "$N" "$N/files" && commit_checkpoint "$@" && mv -- "$N" "$C" && flush "$D" && commit_timer; then exit 0; fi
  # No file was changed yet.
  if [ -d "$C" ]; then mv -- "$C" "$D/confirmed"; fi; rm -rf -- "$N"
  if [ -f "$D/revert" ]; then sh "$D/revert" timer >/dev/null 2>&1; else rmdir -- "$D" 2>/dev/null; fi
  exit 1
); }
`.trimStart();

/** The shell function that writes the given units by file name; the boot unit first, with its link. */
export function unitsFunction(units: Readonly<Record<string, string>>): string {
  const boot = `${REVERT_UNIT}-boot.service`;
  const writes = Object.entries(units).map(
    ([name, text]) =>
      `commit_unit ${name} <<'EOF_UNIT' || return 1\n${text}EOF_UNIT\n${name === boot ? `commit_link ${name} || return 1\n` : ''}`,
  );
  return `commit_units() {\n${writes.join('')}flush "$S"\n}\n`;
}
