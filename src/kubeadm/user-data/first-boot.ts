import { AppError, type Problem } from '../../base/errors.ts';
import { findSecret } from '../../base/text/find-secret.ts';
import { BOOTSTRAP_CONF, KUBELET_CONF } from '../../kube/well-known.ts';
import { type JoinFileSource, joinUnit } from './join-unit.ts';
import { type FirstBoot, type HostEntry, rootFileEntry } from './model.ts';
import type { HostProxy } from './proxy.ts';

/** Path on the host of the CA certificates that verify the server of the join file. */
const JOIN_FILE_CA = '/etc/kubeletadm/join-file-ca.crt';

/** Directories that every system has: user data must not change their modes. */
const SYSTEM_DIRECTORIES: ReadonlySet<string> = new Set(
  ['/boot', '/etc', '/home', '/mnt', '/opt', '/root', '/run', '/srv', '/tmp', '/usr', '/var'].concat(
    ['/etc/default', '/etc/sysconfig', '/etc/sysctl.d', '/etc/modules-load.d', '/etc/systemd', '/etc/systemd/system', '/etc/yum.repos.d'],
    ['/etc/apt', '/etc/apt/keyrings', '/etc/apt/sources.list.d', '/opt/bin', '/usr/bin', '/usr/lib', '/usr/lib/systemd', '/usr/local'],
    ['/usr/local/bin', '/usr/sbin', '/usr/share', '/var/lib', '/var/log', '/var/tmp'],
  ),
);

/**
 * The content of user data with which a host joins a cluster at its first boot: the files of a directory and a systemd unit that
 * runs join.
 * @param input.entries the directory that `--rootfs` names, as entries of the host
 * @param input.program path of kubeletadm or kubeadm on the host
 * @param input.allowedSecrets paths of files on the host that are not searched for secrets
 * @returns also the path of the bootstrap kubeconfig if the directory has one: it contains a token, and join creates it
 * @throws AppError USER_DATA_SECRET or USER_DATA_UNUSABLE (exit code 2), with all problems
 */
export function firstBoot({
  entries,
  joinFile,
  program,
  proxy,
  allowedSecrets,
}: {
  readonly entries: readonly HostEntry[];
  readonly joinFile: JoinFileSource;
  readonly program: string;
  readonly proxy: HostProxy;
  readonly allowedSecrets: readonly string[];
}): {
  readonly content: FirstBoot;
  readonly omitted: string | null;
} {
  const kept = entries.filter(({ kind, path }) => !(kind === 'file' && path === BOOTSTRAP_CONF));
  const caPem = joinFile.kind === 'url' ? joinFile.caPem : null;
  const caPath = caPem === null ? undefined : JOIN_FILE_CA;
  const unit = joinUnit({ joinFile, caPath, program, environment: proxy.environment });
  const own = [...(caPem === null ? [] : [rootFileEntry(JOIN_FILE_CA, caPem)]), ...proxy.dropIns];
  const reserved = new Set([`/etc/systemd/system/${unit.name}`, ...own.map(({ path }) => path)]);
  const problems = [
    ...kept.filter(({ path }) => path === KUBELET_CONF).map(hasJoined),
    ...kept
      .filter(({ path }) => reserved.has(path))
      .map(({ path }) => unusable(`${path}: kubeletadm writes this file itself`, `Remove ${path}`)),
    ...allowedSecrets
      .filter((path) => !kept.some((entry) => entry.kind === 'file' && entry.path === path))
      .map((path) => unusable(`--allow-secret ${path}: the directory has no such file`, 'Pass the path of the file on the host')),
    ...[...kept.filter(({ path }) => !allowedSecrets.includes(path)), ...own].flatMap(secretProblems),
  ];
  if (problems.length > 0) throw new AppError(problems, { exitCode: 2 });
  const omitted = kept.length === entries.length ? null : BOOTSTRAP_CONF;
  return { content: { entries: [...kept.filter((entry) => isWritten(entry, kept)), ...own], unit, restart: proxy.restart }, omitted };
}

/** Whether a directory would differ from the one that cloud-init and Ignition create for the files below it. */
function isWritten(entry: HostEntry, all: readonly HostEntry[]): boolean {
  if (entry.kind !== 'directory') return true;
  if (SYSTEM_DIRECTORIES.has(entry.path)) return false;
  const isEmpty = !all.some(({ path }) => path.startsWith(`${entry.path}/`));
  return isEmpty || entry.mode !== 0o755 || entry.uid !== 0 || entry.gid !== 0;
}

/** In case of doubt, a text is a secret. The message does not contain the secret. */
function secretProblems(entry: HostEntry): readonly Problem[] {
  if (entry.kind !== 'file') return [];
  const text = entry.content.toString('latin1');
  const at = findSecret(text);
  if (at === null) return [];
  const place = text.includes('\0') ? entry.path : `${entry.path}:${text.slice(0, at).split('\n').length}`;
  const what = text.startsWith('-----BEGIN', at) ? 'a private key' : 'what looks like a token, a key or a password';
  const message = `${place}: the file contains ${what}, and every process on a host can read the user data of the host`;
  const hint = `Remove the secret from the directory, and let the host fetch the secret when it boots. If it is no secret: --allow-secret ${entry.path}`;
  return [{ code: 'USER_DATA_SECRET', message, hint }];
}

function hasJoined({ path }: HostEntry): Problem {
  return unusable(
    `${path}: this file exists only on a control plane or on a host that has joined`,
    'Create the directory with kubeletadm join --rootfs',
  );
}

function unusable(message: string, hint: string): Problem {
  return { code: 'USER_DATA_UNUSABLE', message, hint };
}
