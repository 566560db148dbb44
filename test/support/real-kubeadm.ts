import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';
import { parse } from 'yaml';
import { describeCertificate } from '../../src/x509/describe-certificate.ts';
import type { InitInput } from './kubeadm-inputs.ts';
import type { InitExpectation, RecordedAction } from './kubeadm-recordings.ts';

/** The result of `kubeadm init --dry-run` for an input, in the form of the recordings. */
export interface DryRun {
  readonly exitCode: number;
  readonly expected: InitExpectation;
  readonly log: string;
}

/** Writes an input to a directory. */
export function writeInput(directory: string, { documents, patches }: InitInput): string {
  const folder = join(directory, 'patches');
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  for (const [name, text] of Object.entries(patches)) writeFileSync(join(folder, name), text);
  const config = join(directory, 'input.yaml');
  writeFileSync(config, documents.map((document) => JSON.stringify(document, null, 1).replaceAll('@PATCHES@', folder)).join('\n---\n'));
  return config;
}

/** Runs the real kubeadm. */
export async function kubeadmDryRun(kubeadm: string, config: string): Promise<DryRun> {
  const output = mkdtempSync(join(tmpdir(), 'kubeletadm-kubeadm-'));
  // Its preflight waits 15 seconds for an external etcd. Files with skipPhases already list the preflight.
  const without = readFileSync(config, 'utf8').includes('skipPhases') ? [] : ['--skip-phases', 'preflight'];
  try {
    const { exitCode, stdout, stderr } = await execa(kubeadm, ['init', '--config', config, '--dry-run', ...without], {
      reject: false,
      env: { PATH: process.env.PATH, KUBEADM_INIT_DRYRUN_DIR: output },
      extendEnv: false,
    });
    const expected = exitCode === 0 ? { ...readFiles(output), apiActions: readActions(stdout) } : { kubeletFiles: {} };
    return { exitCode: exitCode ?? 1, expected, log: stderr + stdout };
  } finally {
    rmSync(output, { recursive: true, force: true });
  }
}

/** `v1.36.2` */
export function kubeadmVersion(kubeadm: string): string {
  return execFileSync(kubeadm, ['version', '-o', 'short'], { encoding: 'utf8' }).trim();
}

const KUBELET_FILES = new Set(['config.yaml', 'instance-config.yaml', 'kubeadm-flags.env']);

/** All files of a dry run are in one directory. */
function readFiles(output: string): InitExpectation {
  const read = (name: string): string => readFileSync(join(output, name), 'utf8');
  const names = readdirSync(output, { recursive: true, encoding: 'utf8' });
  const manifests = names.filter((name) => /^(?:etcd|kube-.*)\.yaml$/.test(name));
  return {
    files: Object.fromEntries(manifests.map((name) => [`/etc/kubernetes/manifests/${name}`, read(name)])),
    kubeletFiles: Object.fromEntries(names.filter((name) => KUBELET_FILES.has(name)).map((name) => [name, read(name)])),
    pki: Object.fromEntries(names.filter((name) => name.endsWith('.crt')).map((name) => [name, describe(read(name))])),
    kubeconfigs: Object.fromEntries(names.filter((name) => name.endsWith('.conf')).map((name) => [name, describeKubeconfig(read(name))])),
  };
}

function describe(pem: string): object {
  const { notBefore, notAfter, ...rest } = describeCertificate(pem);
  return { ...rest, validDays: Math.floor((Date.parse(notAfter) - Date.parse(notBefore)) / 86_400_000) };
}

function describeKubeconfig(text: string): object {
  const { clusters, users, ...config } = parse(text);
  const [
    [
      {
        name: cluster,
        cluster: { server },
      },
    ],
    [{ name: user, user: login }],
  ] = [clusters, users];
  const certificate = Buffer.from(login['client-certificate-data'], 'base64').toString('utf8');
  return { server, cluster, user, currentContext: config['current-context'], clientCertificate: describe(certificate) };
}

/** The sent objects, in order: each is shown below its action. */
function readActions(text: string): readonly RecordedAction[] {
  const lines = text.split('\n');
  return lines.flatMap((line, i): RecordedAction[] => {
    const [, action, resource] = /^\[dryrun\] Would perform action (CREATE|PATCH|UPDATE) on resource "(\w+)"/.exec(line) ?? [];
    if (action === undefined || resource === undefined) return [];
    const next = lines.slice(i + 1);
    const from = next.findIndex((each) => each.startsWith('[dryrun] Attached object:')) + 1;
    const length = next.slice(from).findIndex((each) => /^(?:\[|Your Kubernetes)/.test(each));
    const object = next.slice(from, length === -1 ? undefined : from + length);
    return [{ action: action as RecordedAction['action'], resource, object: parse(object.join('\n')) }];
  });
}
