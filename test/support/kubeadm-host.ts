import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { execa } from 'execa';
import { parse } from 'yaml';
import { describeCertificate } from '../../src/x509/describe-certificate.ts';

/** A directory that serves kubeadm as the root of a host (`--rootfs`). No program can be started in it. */
export interface KubeadmHost {
  readonly root: string;
  /** Writes a file by its path on the host. */
  put(path: string, text: string | Buffer): void;
  /**
   * Runs kubeadm with that root, without blocking this process, which may be the API server.
   * @returns the output of kubeadm when it fails; null: success
   */
  kubeadm(...args: readonly string[]): Promise<string | null>;
}

/** Creates such a directory, with the CA directories of another host. */
export function kubeadmHost(kubeadm: string, root: string, caDirectories: readonly string[]): KubeadmHost {
  rmSync(root, { recursive: true, force: true });
  for (const path of ['/tmp', '/etc', '/proc', ...caDirectories]) mkdirSync(join(root, path), { recursive: true });
  const put = (path: string, text: string | Buffer): void => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  };
  return {
    root,
    put,
    kubeadm: async (...args) => {
      const options = { reject: false, extendEnv: false, env: { PATH: '/nowhere' }, timeout: 60_000, all: true } as const;
      const { exitCode, all } = await execa(kubeadm, [...args, '--rootfs', root], options);
      if (exitCode === undefined) throw new Error(`kubeadm ${args.join(' ')} did not end: ${all}`);
      return exitCode === 0 ? null : `kubeadm ${args.join(' ')}: ${all}`;
    },
  };
}

/**
 * The files that a run left below a directory, by their paths on the host, in a form that is comparable
 * between runs.
 */
export function filesLeft(root: string): ReadonlyMap<string, unknown> {
  const entries = readdirSync(root, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const paths = entries.map((entry) => join(entry.parentPath, entry.name)).sort();
  return new Map(paths.map((path) => [`/${relative(root, path)}`, comparable(path)]));
}

/**
 * Keys differ in each run: only their mode is compared. Certificates and kubeconfigs are compared by content.
 */
function comparable(path: string): object {
  const text = readFileSync(path, 'utf8');
  const mode = `0${(statSync(path).mode & 0o777).toString(8)}`;
  if (path.endsWith('.key')) return { mode };
  if (/-----BEGIN CERTIFICATE-----/.test(text) && path.endsWith('.crt')) return { mode, certificate: describe(text) };
  if (path.endsWith('.conf') && text.startsWith('apiVersion:')) return { mode, kubeconfig: readable(parse(text)) };
  return { mode, content: path.endsWith('.yaml') ? parse(text) : text };
}

/** Of temporary values only the length is compared. */
function describe(pem: string): object {
  const { notBefore, notAfter, ...rest } = describeCertificate(pem);
  return { ...rest, validHours: Math.round((Date.parse(notAfter) - Date.parse(notBefore)) / 3_600_000) };
}

function readable(config: { users: { user: Record<string, string> }[] }): object {
  const users = config.users.map(({ user, ...rest }) => {
    const { 'client-certificate-data': certificate, 'client-key-data': key, ...others } = user;
    const pem = certificate === undefined ? null : describe(Buffer.from(certificate, 'base64').toString('utf8'));
    return { ...rest, user: { ...others, certificate: pem, hasKey: key !== undefined } };
  });
  return { ...config, users };
}
