/** Owner and permission bits; `uid` and `gid` are numeric, 0 is root. */
interface Owned {
  readonly path: string;
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
}

type HostFileEntry = Owned & { readonly kind: 'file'; readonly content: Buffer };

/** A file, directory or symbolic link of a host. Paths are absolute paths of the host. */
export type HostEntry =
  | HostFileEntry
  | (Owned & { readonly kind: 'directory' })
  | { readonly kind: 'link'; readonly path: string; readonly target: string };

/** A file of root that all users may read. */
export function rootFileEntry(path: string, text: string): HostFileEntry {
  return { kind: 'file', path, content: Buffer.from(text, 'utf8'), mode: 0o644, uid: 0, gid: 0 };
}

/** The content of user data, independent of its format. */
export interface FirstBoot {
  /** In the order of their paths; a directory precedes its entries. */
  readonly entries: readonly HostEntry[];
  /** A systemd unit that is enabled and started at the first boot. */
  readonly unit: { readonly name: string; readonly text: string };
  /** Units to restart if they run before the files are written. */
  readonly restart: readonly string[];
}

export type UserDataFormat = 'cloud-init' | 'butane' | 'ignition';

/**
 * The content as text that every YAML 1.1 and 1.2 reader decodes to the same bytes; null: encode the bytes in base64.
 * Readers differ in the line breaks of other scripts and in control characters.
 */
export function plainTextOf(content: Buffer): string | null {
  const text = content.toString('latin1');
  return /^[\t\n\x20-\x7e]*$/.test(text) ? text : null;
}
