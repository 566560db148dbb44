/**
 * The shell functions of remote programs: POSIX sh with the commands of coreutils and busybox. Starting a
 * process is the most expensive step on a host, so they prefer builtins, and one call for many files.
 * `$R` prefixes every path: empty on a host, a directory when files are staged into it. `at` resolves
 * symbolic links as a host whose root is `$R` would, so that a link in an image (`/var/lib/kubelet -> /data`)
 * never leads out of it; `below` resolves all but the last component. The kernel resolves the running
 * system's /proc, because /proc/self names another process when a subprocess reads it.
 * Each result ends with a marker on both streams, so that banners of a login shell and binary content cannot
 * be mistaken for it; its nonce is new for every program. A result without stderr output writes no stderr
 * marker (`tell`). Each write is a packet to encrypt: the shell buffers its output (`say`, `mark`) until a
 * command is about to write, or the program ends (`out`).
 * bash and mksh store here-documents below `$TMPDIR`, by default /tmp, which can be full.
 */
export const SHARED_FUNCTIONS = `
LC_ALL=C TZ=UTC; export LC_ALL TZ; umask 022
if [ -z "\${TMPDIR-}" ] && [ -w /run ]; then TMPDIR=/run; fi
nl='
'
if [ -O / ] && [ -O /proc/1 ]; then U=0; else U=$(id -u); fi 2>/dev/null
OUT= ERR=
say() { OUT=$OUT$1$nl; }
out() {
  if [ -n "$OUT" ]; then printf %s "$OUT"; OUT=; fi
  if [ -n "$ERR" ]; then printf %s "$ERR" >&2; ERR=; fi
}
mark() { say "$nl$B $1 $2"; ERR="$ERR$nl$B $1$nl"; }
tell() { if [ "$2" = 0 ]; then say "$nl$B $1 $2"; else mark "$1" "$2"; out; fi; }
at() {
  case $R$1 in /proc/*) p=$1; return 0;; esac
  p=$R; s=$1; n=0
  while [ -n "$s" ]; do
    c=\${s%%/*}; case $s in */*) s=\${s#*/};; *) s=;; esac
    case $c in
      ''|.) ;;
      ..) if [ "$p" != "$R" ]; then p=\${p%/*}; fi;;
      *) if [ -L "$p/$c" ]; then
        n=$((n + 1)); if [ $n -gt 40 ]; then echo "$R$1: Too many levels of symbolic links" >&2; return 1; fi
        l=$(readlink -- "$p/$c") || return 1; s=$l/$s; case $l in /*) p=$R;; esac
      else p=$p/$c; fi;;
    esac
  done
}
below() { at "\${1%/*}" && p=$p/\${1##*/}; }
`.trimStart();

/** Creates a directory `$d` that only root may read, where possible not below /tmp, which can be full. */
export const TEMPORARY_DIRECTORY = 'd=$(mktemp -d "${TMPDIR:-/run}/kubeletadm.XXXXXX" 2>/dev/null || mktemp -d)';

/** Exit code of a file query for a path that the user may not look up: EACCES. */
export const DENIED_EXIT = 13;

/** Functions of queries about paths: the common part. `hidden`: the last existing directory above a path may not be searched. */
export const QUERY_FUNCTIONS = `
hidden() {
  if [ "$U" = 0 ]; then return 1; fi
  y=$1
  while [ ! -e "$y" ]; do case $y in /*/*) y=\${y%/*};; *) y=/;; esac; done
  if [ -d "$y" ] && [ ! -x "$y" ]; then echo "$1: Permission denied" >&2; else return 1; fi
}
q_look() {
  below "$1" || return 1
  t=-
  if [ -L "$p" ]; then
    at "$1" || return 1
    t=$(printf %s "\${p#"$R"}" | tr '\\n' '?')
    if [ "$t" = /dev/null ]; then say "other 666 0 0 0 root:root$nl$t"; return 2; fi
  fi
  if [ ! -e "$p" ]; then if hidden "$p"; then return ${DENIED_EXIT}; fi; say absent; return 2; fi
  if [ -f "$p" ]; then k=file; elif [ -d "$p" ]; then k=directory; elif [ -S "$p" ]; then k=socket; else k=other; fi
}
`.trimStart();

/** Queries for files: one stat(1) for all of them. If it fails, a file has disappeared, and each is inspected alone. */
export const FILE_FUNCTIONS = `
N=0 F='%a %Y %u %g %U:%G'
q_file() {
  q_look "$3"
  case $? in
  0) eval "i_$N=\\$1 w_$N=\\$2 p_$N=\\$p k_$N=\\$k t_$N=\\$t"; N=$((N + 1));;
  2) mark "$1" 0;;
  ${DENIED_EXIT}) mark "$1" ${DENIED_EXIT};;
  *) mark "$1" 1;;
  esac
}
q_files() {
  set --; n=0; while [ $n -lt $N ]; do eval "set -- \\"\\$@\\" \\"\\$p_$n\\""; n=$((n + 1)); done
  f=; if [ $N -gt 0 ]; then f=$(stat -c "$F" -- "$@" 2>/dev/null) || f=; fi
  n=0
  while [ $n -lt $N ]; do
    eval "i=\\$i_$n w=\\$w_$n p=\\$p_$n k=\\$k_$n t=\\$t_$n"; n=$((n + 1))
    s=\${f%%"$nl"*}; f=\${f#*"$nl"}
    out; q_show; mark "$i" $?
  done
}
q_show() {
  if [ -z "$s" ]; then s=$(stat -c "$F" -- "$p") || { if [ -e "$p" ]; then return 1; fi; }; fi
  if [ ! -e "$p" ]; then say absent; return 0; fi
  say "$k $s$nl$t"
  if [ "$k$w" = file1 ]; then out; cat -- "$p"; fi
}
`.trimStart();

export const LIST_FUNCTIONS = `
q_list() {
  at "$1" || return 1
  if [ -d "$p/" ]; then echo directory; ls -1A -- "$p/"; elif hidden "$p"; then return 1; else echo absent; fi
}
`.trimStart();

/**
 * The host repeats requests itself: each attempt would otherwise need a program. It sends none to a loopback
 * address while no process listens on the port: each request takes processor time from the service that
 * starts. Not checked for other addresses, and for a host that is only a directory: /proc shows the ports of
 * the running system.
 */
export const HTTP_FUNCTIONS = `
q_wait() {
  a=$1; shift
  while [ "$a" -gt 1 ]; do
    if q_listens "$1"; then
      o=$(q_http "$@"); case $o in *refused*|*"t connect to server"*) ;; *) printf %s "$o"; return 0;; esac
    fi
    a=$((a - 1)); sleep 0.03 2>/dev/null || sleep 1
  done
  if q_listens "$1"; then q_http "$@"; else echo "error cannot connect to $1: no process listens on this port"; fi
}
q_listens() {
  if [ -n "$R" ]; then return 0; fi
  h=\${1#*://}; h=\${h%%/*}
  case $h in 127.*:*|localhost:*|'[::1]':*) h=$(printf ':%04X' "\${h##*:}") || return 0;; *) return 0;; esac
  grep -q "$h [0-9A-F]*:0000 0A " /proc/net/tcp /proc/net/tcp6 2>/dev/null
  [ $? != 1 ]
}
q_http() {
  u=$1; h=\${u#*://}; k=; case $u in https:*) k=-k;; esac; a=\${h%%/*}; q=/; case $h in */*) q=/\${h#*/};; esac; n=\${a%:*}; n=\${n#[}; n=\${n%]}
  if command -v curl >/dev/null; then
    o=$(curl -sS $k --noproxy '*' --max-time "$2" -w '\\n%{http_code}' "$u" 2>&1); r=$?
    if [ $r = 0 ]; then printf 'status %s\\n%s' "\${o##*"$nl"}" "\${o%"$nl"*}"
    else o=curl:\${o#*curl:}; printf 'error %s\\n' "\${o%%"$nl"*}"; fi
  elif [ -z "$k" ] && command -v bash >/dev/null; then
    o=$(timeout "$2" bash --norc --noprofile -c 'exec 3<>"/dev/tcp/$1/$2" && printf "GET %s HTTP/1.0\\r\\nHost: %s\\r\\n\\r\\n" "$3" "$1" >&3 && cat <&3' sh "$n" "\${a##*:}" "$q" </dev/null 2>&1); r=$?
    case $o in
      HTTP/*) c=\${o#* }; printf 'status %.3s\\n' "$c"; printf '%s' "$o" | sed '1,/^.\\{0,1\\}$/d';;
      *) if [ $r = 124 ] || [ $r = 143 ]; then o="timed out after $2 s"; fi; printf 'error %s\\n' "$o";;
    esac
  elif [ -n "$k" ] && command -v openssl >/dev/null; then
    o=$(printf 'GET %s HTTP/1.0\\r\\nHost: %s\\r\\n\\r\\n' "$q" "$n" | timeout "$2" openssl s_client -quiet -connect "$a" 2>/dev/null); r=$?
    case $o in
      HTTP/*) c=\${o#* }; printf 'status %.3s\\n' "$c"; printf '%s' "$o" | sed '1,/^.\\{0,1\\}$/d';;
      *) if [ $r = 124 ] || [ $r = 143 ]; then o="timed out after $2 s"; else o="no response from $a"; fi; printf 'error %s\\n' "$o";;
    esac
  elif command -v wget >/dev/null; then
    if o=$(http_proxy= https_proxy= timeout "$2" wget \${k:+--no-check-certificate} -q -O - "$u" 2>&1); then printf 'status 200\\n%s' "$o"
    else case $o in
      *'HTTP/1.'[01]' '[1-5][0-9][0-9]*) c=\${o#*HTTP/1.[01] }; printf 'status %.3s\\n' "$c";;
      *) printf 'error %s\\n' "\${o:-wget received no response, or an error}";;
    esac; fi
  elif command -v python3 >/dev/null; then
    python3 -c 'import sys,ssl,http.client as c
try:
  a=(sys.argv[1],int(sys.argv[2])); t=int(sys.argv[4])
  s=c.HTTPSConnection(*a,timeout=t,context=ssl._create_unverified_context()) if sys.argv[5] else c.HTTPConnection(*a,timeout=t); s.request("GET",sys.argv[3]); r=s.getresponse()
  sys.stdout.write("status %d\\n%s" % (r.status,r.read().decode("utf-8","replace")))
except Exception as e: print("error %s" % e)' "$n" "\${a##*:}" "$q" "$2" "$k"
  else echo 'error the host has neither curl, bash, wget nor python3'; fi
}
`.trimStart();

/**
 * `fresh` creates a file that must not exist, and follows no symbolic link. `$T` is a random part of the
 * names of temporary files and in no command line, so that other users cannot create one in advance.
 */
export const OPERATION_FUNCTIONS = `
flush() { sync -- "$@" 2>/dev/null || sync; }
own() { if [ "$U" = 0 ]; then chown -- "$1" "$2"; fi; }
fresh() { set -C; { true; } >"$1"; set -- $?; set +C; return $1; }
no_leftovers() {
  b=$1; set --
  for o in "$b".*; do case $o in "$b.$T".*) ;; *) if [ -e "$o" ] || [ -L "$o" ]; then set -- "$@" "$o"; fi;; esac; done
  if [ $# -gt 0 ]; then rm -f -- "$@"; fi
}
`.trimStart();

/**
 * All files of a group exist under temporary names, complete, flushed and with their modes, before the first
 * is renamed. When one write fails, none is renamed; markers follow after the names of all are flushed.
 */
export const WRITE_FUNCTIONS = `
if PATH=/nonexistent printf '' 2>/dev/null; then text() { printf %s "$1"; }; else text() { [ -z "$1" ] || cat <<E_O_T
\${1%"$nl"}
E_O_T
}; fi
w_begin() { N=0 D=0 I=$1; if [ -n "$ERR" ]; then out; fi; }
w_fail() {
  while [ $D -lt $N ]; do eval "rm -f -- \\"\\$t_$D\\""; D=$((D + 1)); done
  tell $((I + $1)) 1; exit 1
}
w_stage() {
  at "$1" || w_fail $N
  if [ -e "$p" ] && [ ! -f "$p" ]; then echo "$p: not a regular file" >&2; w_fail $N; fi
  d=\${p%/*}; d=\${d:-/}; b=$d/.\${p##*/}.kubeletadm; t=$b.$T.$N; i=$N
  if [ ! -d "$d" ]; then mkdir -p -- "$d" || w_fail $N; fi
  no_leftovers "$b"
  eval "p_$N=\\$p t_$N=\\$t d_$N=\\$d m_$N=\\$2 s_$N=\\$5"; N=$((N + 1))
  r=0; case $2 in 0644) umask 133;; 0640) umask 137;; *) umask 177;; esac
  fresh "$t" || w_fail $i
  if [ "$4" = base64 ]; then base64 -d; else text "$6"; fi >>"$t" || r=1
  umask 022
  if [ $r = 1 ]; then if [ -e "$t" ]; then echo "$t: $(($(wc -c <"$t"))) of $5 bytes could be written" >&2; fi; w_fail $i; fi
  if [ "$3" = root:root ] && [ -O "$t" ] && [ -G "$t" ]; then return 0; fi
  own "$3" "$t" || w_fail $i
}
w_commit() {
  set --; n=0; while [ $n -lt $N ]; do eval "set -- \\"\\$@\\" \\"\\$t_$n\\""; n=$((n + 1)); done
  f=$(stat -c '%s %a' -- "$@") || w_fail 0
  n=0
  while [ $n -lt $N ]; do
    l=\${f%%"$nl"*}; f=\${f#*"$nl"}; eval "t=\\$t_$n s=\\$s_$n m=\\$m_$n"
    if [ "\${l% *}" != "$s" ]; then echo "$t: \${l% *} of $s bytes could be written" >&2; w_fail $n; fi
    if [ "\${l#* }" -ne "$m" ]; then chmod -- "$m" "$t" || w_fail $n; fi
    n=$((n + 1))
  done
  flush "$@"
  set --
  while [ $D -lt $N ]; do
    eval "p=\\$p_$D t=\\$t_$D d=\\$d_$D"
    mv -f -- "$t" "$p" || break
    if [ -z "$R" ] && command -v restorecon >/dev/null; then restorecon -- "$p" 2>/dev/null; fi
    set -- "$@" "$d"; D=$((D + 1))
  done
  n=$D; if [ $n -gt 0 ]; then flush "$@"; fi
  i=0; while [ $i -lt $n ]; do tell $((I + i)) 0; i=$((i + 1)); done
  if [ $n -lt $N ]; then w_fail $n; fi
}
`.trimStart();

/**
 * `w_empty` may run while a container still writes below the directory, so no path is resolved twice. GNU
 * find(1) works with directory handles. Elsewhere `drop_all` does the same: the working directory of a shell
 * is a handle, /proc/self/cwd shows its path, and all names in it have one component, which unlink(2) and
 * rmdir(2) do not follow. Bind mounts from the same file system are the same device to `-xdev`, so no file
 * system may be mounted below.
 */
export const TREE_FUNCTIONS = `
w_directory() {
  at "$1" || return 1
  if [ -d "$p" ]; then chmod -- "$2" "$p" || return 1; else mkdir -p -m "$2" -- "$p" || return 1; fi
  if [ "$3" = root:root ] && [ -O "$p" ] && [ -G "$p" ]; then return 0; fi
  own "$3" "$p"
}
w_remove() { below "$1" || return 1; rm -f -- "$p" || return 1; if [ -d "\${p%/*}" ]; then flush "\${p%/*}"; fi; }
w_move() {
  below "$2" || return 1; t=$p; below "$1" || return 1
  if [ ! -e "$p" ] && [ ! -L "$p" ]; then return 0; fi
  mkdir -p -- "\${t%/*}" && mv -f -- "$p" "$t" && flush "\${t%/*}" && flush "\${p%/*}"
}
w_empty() {
  at "$1" || return 1; if [ ! -d "$p" ]; then return 0; fi
  d=$(cd -P -- "$p" && pwd -P) || return 1; m=$(mounted_below "$d")
  if [ -n "$m" ]; then echo "\${m%%"$nl"*} is a mount point: unmount it first" >&2; return 1; fi
  case $(find --version 2>/dev/null) in
    *'GNU findutils'*) find "$d" -mindepth 1 -xdev -delete;;
    *) (cd -P -- "$d" && drop_all "$d");;
  esac
}
drop_all() {
  if [ "$(readlink /proc/self/cwd; echo .)" != "$1$nl." ]; then echo "$1 was replaced while it was emptied" >&2; return 1; fi
  set -- "$1"
  for f in ./* ./.[!.]* ./..?*; do
    if [ -d "$f" ] && [ ! -L "$f" ]; then (cd -P "$f" && drop_all "$1/\${f#./}") && rmdir "$f" || return 1
    elif [ -e "$f" ] || [ -L "$f" ]; then
      set -- "$@" "$f"
      if [ $# -gt 200 ]; then d=$1; shift; rm -f "$@" || return 1; set -- "$d"; fi
    fi
  done
  if [ $# -gt 1 ]; then shift; rm -f "$@"; fi
}
w_rmdir() { w_empty "$1" && if [ -d "$p" ]; then rmdir -- "$p" && flush "\${p%/*}"; fi; }
w_prune() { at "$1" || return 1; if [ -d "$p" ] && rmdir -- "$p" 2>/dev/null; then flush "\${p%/*}"; fi; }
w_unmount() {
  at "$1" || return 1; d=$(cd -P -- "$p" 2>/dev/null && pwd -P) || return 0
  mounted_below "$d" | sort -r | while IFS= read -r m; do umount $2 -- "$m" || return 1; done
}
mounted_below() {
  set -- "$(printf '%s/' "$1" | sed 's/\\\\/\\\\134/g; s/ /\\\\040/g; s/	/\\\\011/g; s/#/\\\\043/g')"
  while IFS=' ' read -r _ m _; do case $m in "$1"*) printf '%b\\n' "$m";; esac; done </proc/self/mounts
}
`.trimStart();

/**
 * Arguments: path, maximum number and size of older lines, a text that marks the lines that the entry
 * replaces, and its JSON. The file is replaced, because an interrupted program must not leave a part of a
 * line. Arguments of `w_attach`: path, maximum number of files in its directory, content.
 */
export const JOURNAL_FUNCTIONS = `
w_journal() {
  at "$1" || return 1; d=\${p%/*}; b=$d/.\${p##*/}.kubeletadm; t=$b.$T.j
  if [ ! -d "$d" ]; then mkdir -p -- "$d" && chmod 0700 -- "$d" || return 1; fi
  no_leftovers "$b"
  u=\${SUDO_USER:-root}; if [ "$U" != 0 ] && [ -z "\${SUDO_USER-}" ]; then u=$(id -un); fi
  case $u in *[!A-Za-z0-9._@+-]*) u=$(printf %s "$u" | tr -cd 'A-Za-z0-9._@+-');; esac
  umask 177; fresh "$t"; set -- $? "$@"; umask 022; if [ $1 != 0 ]; then return 1; fi; shift
  {
    if [ -f "$p" ]; then grep -vF -- "$4" <"$p" | tail -n "$2" | tail -c "$3"; fi
    printf '{"login":"%s",%s\\n' "$u" "\${5#?}"
  } >>"$t" && flush "$t" && mv -f -- "$t" "$p" || { rm -f -- "$t"; return 1; }
}
w_attach() {
  at "$1" || return 1; d=\${p%/*}; b=$d/.kubeletadm; t=$b.$T.a
  if [ ! -d "$d" ]; then mkdir -p -- "$d" && chmod 0700 -- "$d" || return 1; fi
  no_leftovers "$b"
  umask 177; fresh "$t"; set -- $? "$@"; umask 022; if [ $1 != 0 ]; then return 1; fi; shift
  printf '%s\\n' "$3" >>"$t" && flush "$t" && mv -f -- "$t" "$p" || { rm -f -- "$t"; return 1; }
  ls -1t -- "$d" | tail -n +$(($2 + 1)) | while IFS= read -r o; do rm -f -- "$d/$o"; done
}
`.trimStart();

/**
 * The pieces of a file are kept below a directory of root until it is complete, so that each run of the same
 * upload continues it. `u_begin` prints how many bytes exist. A file uploaded into that directory itself for
 * a later command is continued after that command failed as well.
 */
export const UPLOAD_FUNCTIONS = `
u_part() { at /var/lib/kubeletadm/uploads && u=$p && t=$u/$1.part; }
u_size() { if [ -f "$t" ]; then n=$(($(wc -c <"$t"))); else n=0; fi; }
u_begin() {
  u_part "$1" || return 1
  if [ ! -d "$u" ]; then mkdir -p -- "$u" && chmod 0700 -- "$u" || return 1; fi
  find "$u" -type f -mtime +7 -exec rm -f -- {} +
  if [ "\${3%/*}" = /var/lib/kubeletadm/uploads ] && [ ! -e "$t" ] && [ -f "$u/\${3##*/}" ]; then mv -f -- "$u/\${3##*/}" "$t" || return 1; fi
  u_size; if [ $n -gt "$2" ]; then rm -f -- "$t" || return 1; n=0; fi
  if [ $n = 0 ] && [ ! -e "$t" ]; then (umask 177; fresh "$t") || return 1; fi
  say "$n"
}
u_piece() {
  u_part "$1" && u_size
  if [ $n != "$2" ]; then cat >/dev/null; echo "the upload has $n bytes instead of $2, because another run continued the upload" >&2; return 1; fi
  base64 -d >>"$t"
}
u_end() {
  u_part "$2" || return 1
  s=$(sha256sum <"$t") || return 1
  if [ "\${s%% *}" != "$2" ]; then rm -f -- "$t"; echo "$1: the file was damaged during the transfer" >&2; return 1; fi
  at "$1" || return 1
  d=\${p%/*}; x=$t
  if [ "$d" != "$u" ]; then
    x=$d/.\${p##*/}.kubeletadm.$T; if [ ! -d "$d" ]; then mkdir -p -- "$d" || return 1; fi
    no_leftovers "$d/.\${p##*/}.kubeletadm"
    (umask 177; fresh "$x") && cat -- "$t" >>"$x" || { rm -f -- "$x"; return 1; }
  fi
  chmod -- "$3" "$x" && own "$4" "$x" && flush "$x" && mv -f -- "$x" "$p" || return 1
  if [ -z "$R" ] && command -v restorecon >/dev/null; then restorecon -- "$p" 2>/dev/null; fi
  rm -f -- "$t"; flush "$d"
}
`.trimStart();

/** Pieces arrive in separate programs; the file is renamed after its hash is verified. */
export const LARGE_FILE_FUNCTIONS = `
w_large() { at "$1" && d=\${p%/*} && b=$d/.\${p##*/}.kubeletadm && t=$b.$T; }
w_piece() {
  w_large "$1" || return 1
  if [ "$2" = 1 ]; then
    if [ ! -d "$d" ]; then mkdir -p -- "$d" || return 1; fi
    no_leftovers "$b"
    (umask 177; fresh "$t") || return 1
  fi
  base64 -d >>"$t" || { rm -f -- "$t"; return 1; }
}
w_put() {
  w_large "$1" || return 1
  if (umask 177; fresh "$t.x") && gzip -dc <"$t" >>"$t.x" && s=$(sha256sum <"$t.x") && { [ "\${s%% *}" = "$4" ] || { echo "$1: the file was damaged during the transfer" >&2; false; }; } &&
    chmod -- "$2" "$t.x" && own "$3" "$t.x" && flush "$t.x" && mv -f -- "$t.x" "$p"; then
    if [ -z "$R" ] && command -v restorecon >/dev/null; then restorecon -- "$p" 2>/dev/null; fi
    rm -f -- "$t"; flush "$d"
  else rm -f -- "$t" "$t.x"; return 1; fi
}
`.trimStart();
