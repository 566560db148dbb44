/** Puts paths below KUBELETADM_ROOT, which is set where a directory stands for the host (the lab). */
const IN_ROOT = `for a do shift; set -- "$@" "\${KUBELETADM_ROOT-}$a"; done
`;

type Words = readonly [program: string, ...args: string[]];

/**
 * A shell command that copies a directory. The copy gets its name when it is complete and on disk, so that an
 * interrupted copy is never used. It fails if the name exists: other content is never taken for the copy.
 */
export function copyDirectory(path: string, to: string): Words {
  const script = `${IN_ROOT}[ ! -e "$2" ] && [ ! -L "$2" ] || { echo "$2 exists" >&2; exit 1; }
mkdir -p "\${2%/*}" && rm -rf "$2.partial" && cp -a "$1" "$2.partial" && sync && mv "$2.partial" "$2" && sync && exit 0
rm -rf "$2.partial"; exit 1`;
  return ['sh', '-c', script, 'sh', path, to];
}

export function requireDirectory(path: string): Words {
  return ['sh', '-c', `${IN_ROOT}[ -d "$1" ] || { echo "$1 does not exist" >&2; exit 1; }`, 'sh', path];
}

/**
 * A shell command that replaces a directory by another one, by two renames. The replaced directory is kept
 * under a new name. It fails without an effect if the new directory does not exist or that name is in use.
 */
export function swapDirectory(options: { readonly path: string; readonly by: string; readonly kept: string }): Words {
  const script = `${IN_ROOT}[ -d "$2" ] || { echo "$2 does not exist" >&2; exit 1; }
[ ! -e "$3" ] && [ ! -L "$3" ] || { echo "$3 exists" >&2; exit 1; }
if [ -e "$1" ]; then mv "$1" "$3" || exit 1; fi
[ ! -e "$1" ] && mv "$2" "$1" && sync && exit 0
[ -e "$1" ] || mv "$3" "$1"; exit 1`;
  return ['sh', '-c', script, 'sh', options.path, options.by, options.kept];
}
