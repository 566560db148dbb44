import { type FirstBoot, type HostEntry, plainTextOf, rootFileEntry } from './model.ts';

/** Systems whose configuration Butane translates. */
export type ButaneVariant = 'fcos' | 'flatcar';

/** Versions that Butane translates to Ignition 3.4.0. @see coreos.github.io/butane/specs */
const BUTANE_VERSIONS: Readonly<Record<ButaneVariant, string>> = { fcos: '1.5.0', flatcar: '1.1.0' };
const IGNITION_VERSION = '3.4.0';

/**
 * The document of `#cloud-config`. cloud-init writes files, then runs the commands in the order given: it has no module for
 * directories, links and numeric owners.
 * @see cloudinit.readthedocs.io: modules Write Files, Runcmd
 */
export function cloudConfig({ entries, unit, restart }: FirstBoot): object {
  const files = [...entries.filter((entry) => entry.kind === 'file'), rootFileEntry(`/etc/systemd/system/${unit.name}`, unit.text)];
  return {
    write_files: files.map(({ path, mode, content }) => {
      const text = plainTextOf(content);
      return {
        path,
        owner: 'root:root',
        permissions: formatMode(mode),
        ...(text === null ? { encoding: 'b64', content: content.toString('base64') } : { content: text }),
      };
    }),
    runcmd: [
      ...entries.flatMap(commandsFor),
      ['systemctl', 'daemon-reload'],
      // The host has started its units; Ignition writes files before that.
      ...(restart.length === 0 ? [] : [['systemctl', 'try-restart', ...restart]]),
      // Without --no-block, cloud-init would wait until join succeeds.
      ['systemctl', 'enable', '--now', '--no-block', unit.name],
    ],
  };
}

function commandsFor(entry: HostEntry): readonly (readonly string[])[] {
  if (entry.kind === 'link')
    return [
      ['mkdir', '-p', '--', entry.path.replace(/\/[^/]*$/, '') || '/'],
      ['ln', '-sfn', '--', entry.target, entry.path],
    ];
  const { path, mode, uid, gid } = entry;
  if (entry.kind === 'directory') return [['install', '-d', '-m', formatMode(mode), '-o', String(uid), '-g', String(gid), '--', path]];
  if (uid === 0 && gid === 0) return [];
  // chown clears set-user-ID bits.
  return [
    ['chown', `${uid}:${gid}`, '--', path],
    ['chmod', formatMode(mode), '--', path],
  ];
}

/** A mode in octal digits, e.g. `0644`. */
function formatMode(mode: number): string {
  return mode.toString(8).padStart(4, '0');
}

/** The document of Ignition. @see coreos.github.io/ignition/configuration-v3_4 */
export function ignitionConfig(content: FirstBoot): object {
  return { ignition: { version: IGNITION_VERSION }, ...machineConfig(content, (bytes) => ({ source: dataUrl(bytes) })) };
}

/** The document of Butane, with readable texts. @see coreos.github.io/butane/specs */
export function butaneConfig(content: FirstBoot, variant: ButaneVariant): object {
  const contentsOf = (bytes: Buffer): object => {
    const text = plainTextOf(bytes);
    return text === null ? { source: dataUrl(bytes) } : { inline: text };
  };
  return { variant, version: BUTANE_VERSIONS[variant], ...machineConfig(content, contentsOf) };
}

/** The members that Ignition and Butane have in common. */
function machineConfig({ entries, unit }: FirstBoot, contentsOf: (content: Buffer) => object): object {
  const placed = ({ path, mode, uid, gid }: Exclude<HostEntry, { kind: 'link' }>): object => ({
    path,
    mode,
    user: { id: uid },
    group: { id: gid },
  });
  const directories = entries.filter((entry) => entry.kind === 'directory').map(placed);
  const links = entries
    .filter((entry) => entry.kind === 'link')
    .map(({ path, target }) => ({ path, target, hard: false, overwrite: true }));
  const files = entries
    .filter((entry) => entry.kind === 'file')
    .map((entry) => ({ ...placed(entry), overwrite: true, contents: contentsOf(entry.content) }));
  return {
    storage: { directories, files, links },
    systemd: { units: [{ name: unit.name, enabled: true, contents: unit.text }] },
  };
}

function dataUrl(content: Buffer): string {
  return `data:;base64,${content.toString('base64')}`;
}
