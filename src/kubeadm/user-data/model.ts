/** A file, directory or link of a host. Paths are absolute paths of the host. */
export type HostEntry = HostFileEntry | HostDirectoryEntry | HostLinkEntry;

/** Owner and permission bits; `uid` and `gid` are numeric, 0 is root. */
interface Ownership {
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
}

export interface HostFileEntry extends Ownership {
  readonly kind: 'file';
  readonly path: string;
  readonly content: Buffer;
}

interface HostDirectoryEntry extends Ownership {
  readonly kind: 'directory';
  readonly path: string;
}

/** A symbolic link. */
interface HostLinkEntry {
  readonly kind: 'link';
  readonly path: string;
  readonly target: string;
}

/** A systemd unit that is enabled and started at the first boot. */
export interface EnabledUnit {
  readonly name: string;
  readonly text: string;
}

/** The content of user data, independent of its format. */
export interface FirstBoot {
  /** In the order of their paths; a directory precedes its entries. */
  readonly entries: readonly HostEntry[];
  readonly unit: EnabledUnit;
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
