/**
 * A shell command that copies a directory. The copy is renamed to its name when it is complete and on disk, so that an
 * interrupted copy is never used; an existing copy is kept.
 */
export function copyDirectory(path: string, to: string): readonly [program: string, ...args: string[]] {
  const script = `[ ! -e "$2" ] || exit 0
mkdir -p "\${2%/*}" && rm -rf "$2.partial" && cp -a "$1" "$2.partial" && sync && mv "$2.partial" "$2" && exit 0
rm -rf "$2.partial"; exit 1`;
  return ['sh', '-c', script, 'sh', path, to];
}
