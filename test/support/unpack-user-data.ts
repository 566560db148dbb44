import { execFileSync } from 'node:child_process';
import { chmodSync, chownSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parse } from 'yaml';
import * as z from 'zod';
import type { UserDataFormat } from '../../src/kubeadm/user-data/model.ts';

/** Without root, all files belong to the user, and readHostEntries shows them as root's. */
const IS_ROOT = process.geteuid?.() === 0;
const OWNER = /^-[og]$/;

/** A unit that the host enables. */
export interface UnpackedUnit {
  readonly name: string;
  readonly text: string;
}

/**
 * Writes the files of user data below a directory, as cloud-init or Ignition does on a host, and reads the documents
 * strictly: a member that they do not have is an error.
 * @returns the unit that starts at the first boot
 */
export function unpackUserData(text: string, format: UserDataFormat, root: string): UnpackedUnit {
  mkdirSync(root, { recursive: true });
  return format === 'cloud-init' ? unpackCloudConfig(text, root) : unpackMachineConfig(text, format, root);
}

/** The part of cloud-init's JSON Schema that is used. @see cloud-init 22.4 schema-cloud-config-v1.json: cc_write_files, cc_runcmd */
const CLOUD_CONFIG = z.strictObject({
  write_files: z.array(
    z.strictObject({
      path: z.string().startsWith('/'),
      owner: z.literal('root:root'),
      permissions: z.string().regex(/^0[0-7]{3,4}$/),
      encoding: z.literal('b64').optional(),
      content: z.string(),
    }),
  ),
  runcmd: z.array(z.array(z.string()).min(1)),
});

function unpackCloudConfig(text: string, root: string): UnpackedUnit {
  if (!text.startsWith('#cloud-config\n')) throw new Error('the first line is not #cloud-config');
  // PyYAML reads YAML 1.1.
  const { write_files: files, runcmd } = CLOUD_CONFIG.parse(parse(text, { version: '1.1' }));
  for (const { path, permissions, encoding, content } of files)
    writeEntry(root, path, {
      mode: Number.parseInt(permissions, 8),
      content: Buffer.from(content, encoding === 'b64' ? 'base64' : 'utf8'),
    });
  for (const argv of runcmd.filter(([program]) => program !== 'systemctl')) {
    const [program = '', ...words] = argv;
    // All paths of the commands are behind `--`; the target of a link is not a path of this host.
    const from = words.indexOf('--') + (program === 'ln' ? 2 : 1);
    const options = words.slice(0, from).filter((word, i, all) => IS_ROOT || !(OWNER.test(word) || OWNER.test(all[i - 1] ?? '')));
    execFileSync(program, [...options, ...words.slice(from).map((path) => join(root, path))]);
  }
  const enabled = runcmd.find(([, verb]) => verb === 'enable')?.at(-1) ?? '';
  const unit = files.find(({ path }) => path === `/etc/systemd/system/${enabled}`);
  return { name: enabled, text: unit?.content ?? '' };
}

const PLACED = {
  path: z.string().startsWith('/'),
  mode: z.int().min(0).max(0o7777),
  user: z.strictObject({ id: z.int() }),
  group: z.strictObject({ id: z.int() }),
};
const SOURCE = z.strictObject({ source: z.string().startsWith('data:;base64,') });

/** The members that Ignition 3.4 and Butane have in common. @see coreos.github.io/ignition/configuration-v3_4 */
const machineConfig = (contents: z.ZodType<{ readonly source?: string; readonly inline?: string }>) => ({
  storage: z.strictObject({
    directories: z.array(z.strictObject(PLACED)),
    files: z.array(z.strictObject({ ...PLACED, overwrite: z.literal(true), contents })),
    links: z.array(z.strictObject({ path: PLACED.path, target: z.string(), hard: z.literal(false), overwrite: z.literal(true) })),
  }),
  systemd: z.strictObject({
    units: z.array(z.strictObject({ name: z.string(), enabled: z.literal(true), contents: z.string() })).length(1),
  }),
});
const IGNITION = z.strictObject({ ignition: z.strictObject({ version: z.literal('3.4.0') }), ...machineConfig(SOURCE) });
const BUTANE = z.strictObject({
  variant: z.enum(['fcos', 'flatcar']),
  version: z.string(),
  ...machineConfig(z.union([SOURCE, z.strictObject({ inline: z.string() })])),
});

function unpackMachineConfig(text: string, format: 'butane' | 'ignition', root: string): UnpackedUnit {
  // Butane reads octal numbers of YAML 1.1.
  const { storage, systemd } = format === 'ignition' ? IGNITION.parse(JSON.parse(text)) : BUTANE.parse(parse(text, { version: '1.1' }));
  for (const { path, mode, user, group } of storage.directories) {
    mkdirSync(join(root, path), { recursive: true });
    chmodSync(join(root, path), mode);
    if (IS_ROOT) chownSync(join(root, path), user.id, group.id);
  }
  for (const { path, mode, user, group, contents } of storage.files) {
    const content = contents.source === undefined ? Buffer.from(contents.inline ?? '') : Buffer.from(contents.source.slice(13), 'base64');
    writeEntry(root, path, { mode, content });
    if (IS_ROOT) chownSync(join(root, path), user.id, group.id);
    chmodSync(join(root, path), mode);
  }
  for (const { path, target } of storage.links) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    symlinkSync(target, join(root, path));
  }
  const [unit] = systemd.units;
  return { name: unit?.name ?? '', text: unit?.contents ?? '' };
}

function writeEntry(root: string, path: string, { mode, content }: { readonly mode: number; readonly content: Buffer }): void {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), content);
  chmodSync(join(root, path), mode);
}
