import { AppError, usageError } from '../../base/errors.ts';
import type { FirstBoot } from './model.ts';

/** Where a host gets the JoinConfiguration. */
export type JoinFileSource =
  | { readonly kind: 'path'; readonly path: string }
  | {
      readonly kind: 'url';
      /** An https URL. */
      readonly url: string;
      /** CA certificates that verify the server; null: those of the host. */
      readonly caPem: string | null;
    };

const NAME = 'kubeletadm-join';
const FETCHED = `/run/${NAME}/join.yaml`;
/** Exists after a successful join. */
const JOINED = `/var/lib/${NAME}/joined`;
const HOST_PATH = /^(?:\/[\w.@+-]+)+$/;
/** Names of parameters with which a URL authenticates a request. */
const CREDENTIAL = /(?:^|[-_])(?:sig|signature|token|secret|password|credential|key)$/i;

/**
 * Reads the place of the join file: an https URL or an absolute path of the host.
 * @throws AppError USAGE or USER_DATA_SECRET (exit code 2)
 */
export function parseJoinFile(text: string, caPem: string | null): JoinFileSource {
  if (!/^[a-z][a-z0-9+.-]*:\/\//i.test(text)) {
    if (caPem !== null) throw usageError('--join-file-ca requires a URL as --join-file', 'Omit --join-file-ca');
    return { kind: 'path', path: hostPath(text, '--join-file') };
  }
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null) throw usageError('--join-file: invalid URL', 'For example: --join-file https://config.example.com/join.yaml');
  if (url.protocol !== 'https:')
    throw usageError(`--join-file: ${url.protocol}// is not encrypted, and the join file contains a token`, 'Use an https URL');
  if (url.username !== '' || url.password !== '' || [...url.searchParams.keys()].some((name) => CREDENTIAL.test(name)))
    throw new AppError(
      {
        code: 'USER_DATA_SECRET',
        message: '--join-file: the URL contains credentials, and every process on a host can read the user data of the host',
        hint: 'Use a URL without credentials. Or use the path of a file that the host downloads with its cloud identity (instance role)',
      },
      { exitCode: 2 },
    );
  url.hash = '';
  if (caPem !== null && !caPem.includes('-----BEGIN CERTIFICATE-----'))
    throw usageError('--join-file-ca: the file contains no certificate', 'Pass a PEM file with CA certificates');
  return { kind: 'url', url: url.href, caPem };
}

/** @throws AppError USAGE (exit code 2) for a path that is not absolute or has characters with a meaning in units */
export function hostPath(path: string, option: string): string {
  if (HOST_PATH.test(path)) return path;
  throw usageError(
    `${option}: not an absolute path of letters, digits and . _ @ + - /`,
    `For example: ${option} ${option === '--join-file' ? '/run/join.yaml or https://config.example.com/join.yaml' : '/opt/bin/kubeletadm'}`,
  );
}

/**
 * The unit that joins the host to its cluster until that has succeeded. A fetched join file is stored in memory (/run), for
 * the time of the run, and is fetched again for each retry, so that an expired token can be replaced on the server.
 * @param input.caPath path of the CA certificates on the host
 * @param input.environment lines of the section Service
 * @see systemd.service(5): Restart=on-failure of Type=oneshot requires systemd 244
 */
export function joinUnit({
  joinFile,
  caPath,
  program,
  environment,
}: {
  readonly joinFile: JoinFileSource;
  readonly caPath: string | undefined;
  readonly program: string;
  readonly environment: readonly string[];
}): FirstBoot['unit'] {
  const fetch = joinFile.kind === 'path' ? [] : fetchLines(joinFile.url, caPath);
  const config = joinFile.kind === 'path' ? joinFile.path : FETCHED;
  const text = [
    '# Written by kubeletadm config user-data.',
    '[Unit]',
    'Description=Join this host to its Kubernetes cluster',
    'Documentation=https://kubernetes.io/docs/reference/setup-tools/kubeadm/kubeadm-join/',
    'Wants=network-online.target',
    'After=network-online.target containerd.service crio.service',
    // Not kubelet.conf: it exists before join has finished, and an interrupted join must be resumed.
    `ConditionPathExists=!${JOINED}`,
    'StartLimitIntervalSec=0',
    '',
    '[Service]',
    'Type=oneshot',
    'UMask=0077',
    `StateDirectory=${NAME}`,
    ...environment,
    ...fetch,
    `ExecStart=${program} join --config ${config}`,
    `ExecStartPost=/bin/touch ${JOINED}`,
    'Restart=on-failure',
    'RestartSec=10',
    '',
    '[Install]',
    'WantedBy=multi-user.target',
    '',
  ];
  return { name: `${NAME}.service`, text: text.join('\n') };
}

function fetchLines(url: string, caPath: string | undefined): readonly string[] {
  const words = [
    '/usr/bin/curl --fail --silent --show-error --location --proto =https --proto-redir =https --tlsv1.2',
    '--max-time 60 --max-filesize 1048576',
    ...(caPath === undefined ? [] : [`--cacert ${caPath}`]),
    `--output ${FETCHED}`,
    unitWord(url),
  ];
  return [`RuntimeDirectory=${NAME}`, 'RuntimeDirectoryMode=0700', `ExecStartPre=${words.join(' ')}`];
}

/** A word of ExecStart= without specifiers and variables. @see systemd.service(5) COMMAND LINES */
function unitWord(text: string): string {
  return `"${text.replace(/[\\"]/g, '\\$&').replaceAll('%', '%%').replaceAll('$', '$$$$')}"`;
}
