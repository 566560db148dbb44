import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { execa } from 'execa';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { type LabApiServer, startApiServer } from '../../lab/api-server/server.ts';
import { Secret } from '../../src/base/text/secret.ts';
import type { PlanDocument } from '../../src/host/plan/document.ts';
import { bootstrapRbac } from '../../src/kubeadm/cluster-objects/bootstrap-rbac.ts';
import { clusterInfoMap, clusterInfoRbac } from '../../src/kubeadm/cluster-objects/cluster-info.ts';
import { kubeletConfigRbac } from '../../src/kubeadm/cluster-objects/kubelet-config-map.ts';
import { kubeadmConfigRbac } from '../../src/kubeadm/phases/upload-config.ts';
import { tokenSecret } from '../../src/kubeadm/token/token-secret.ts';
import { caPinsOf } from '../../src/x509/ca-pin.ts';
import { type JoinInput, joinInputs } from '../support/kubeadm-inputs/join.ts';
import { findRealBinaries } from '../support/real-apiserver.ts';
import { kubeadmVersion } from '../support/real-kubeadm.ts';
import { requirement } from '../support/requirement.ts';
import { runCommand } from '../support/run-cli.ts';

const binaries = findRealBinaries();
const kubeadm = typeof binaries === 'string' ? null : binaries.kubeadm;

function whyNot(): string | null {
  if (typeof binaries === 'string') return binaries;
  if (kubeadm === null) return 'kubeadm not found next to kube-apiserver';
  if (process.getuid?.() !== 0) return 'kubeadm needs root to take a directory for the root of the host';
  const version = kubeadmVersion(kubeadm);
  return version.startsWith('v1.36.') ? null : `kubeadm is ${version}, not 1.36`;
}

const RUNS = Number(process.env.KUBELETADM_RUNS ?? 8);
const TOKENS = ['fedcba.fedcba9876543210', 'abcdef.abcdef9876543210'] as const;
const KUBELET = '/var/lib/kubelet';
const PATHS = [
  '/etc/kubernetes/bootstrap-kubelet.conf',
  ...['config.yaml', 'instance-config.yaml', 'kubeadm-flags.env'].map((name) => `${KUBELET}/${name}`),
];
/** Files of the kubelet package and the saved settings of a node, which kubeadm does not write. */
const OURS = /^\/etc\/systemd\/system\/kubelet\.service|\/kubeletadm-node\.yaml$/;

describe.skipIf(requirement('joining a worker compared with kubeadm', whyNot()))('any worker', () => {
  const directory = mkdtempSync(join(tmpdir(), 'kubeletadm-joins-'));
  let api: LabApiServer;
  beforeAll(async () => {
    api = await startApiServer({ controllers: ['bootstrap-signer'] });
    api.put(...bootstrapRbac(), ...kubeletConfigRbac('kubelet-config'), ...kubeadmConfigRbac(), ...clusterInfoRbac());
    api.put(clusterInfoMap({ server: api.url, caPem: api.caPem }));
    for (const token of TOKENS) {
      const groups = ['system:bootstrappers:kubeadm:default-node-token'];
      api.put(tokenSecret({ token: new Secret(token), usages: ['signing', 'authentication'], groups }, new Date()));
    }
  });
  afterAll(async () => {
    await api?.close();
    rmSync(directory, { recursive: true, force: true });
  });

  it('gets the same files as from kubeadm, or is rejected by both', { timeout: 60_000 + RUNS * 10_000 }, async () => {
    let [compared, refused] = [0, 0];
    const property = fc.asyncProperty(joinInputs, async (input) => {
      publish(input);
      const theirs = await theirJoin(input);
      const ours = await ourJoin(input);
      expect(ours.code === 0, ours.stderr + theirs.log).toBe(theirs.exitCode === 0);
      if (ours.code !== 0) {
        refused++;
        return;
      }
      const written = filesOf(ours.stdout);
      for (const path of theirs.files.keys()) expect(comparable(written.get(path)), path).toEqual(comparable(theirs.files.get(path)));
      const more = [...written.keys()].filter((path) => !theirs.files.has(path) && !OURS.test(path));
      expect(more, 'files that kubeadm does not write').toEqual([]);
      compared += theirs.files.size;
    });
    await fc.assert(property, { numRuns: RUNS, seed: 1362, endOnFailure: process.env.KUBELETADM_RUNS === undefined });
    console.log(
      `${RUNS} workers, ${refused} refused by both; ${compared} files of kubeadm ${kubeadmVersion(kubeadm as string)}, all equal`,
    );
  });

  function publish({ kubelet, cluster }: JoinInput): void {
    const map = (name: string, data: Readonly<Record<string, string>>) => ({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name, namespace: 'kube-system' },
      data,
    });
    api.put(
      map('kubelet-config', { kubelet: JSON.stringify(kubelet) }),
      map('kubeadm-config', { ClusterConfiguration: JSON.stringify(cluster) }),
    );
  }

  async function theirJoin(input: JoinInput) {
    const root = join(directory, 'theirs');
    rmSync(root, { recursive: true, force: true });
    const config = write(root, input, '');
    const { exitCode, all } = await execa(kubeadm as string, ['join', 'phase', 'kubelet-start', '--config', config, '--rootfs', root], {
      ...{ reject: false, all: true, env: { PATH: '' }, extendEnv: false },
    });
    const paths = [...PATHS, (input.document as { caCertPath?: string }).caCertPath ?? '/etc/kubernetes/pki/ca.crt'].filter((path) =>
      existsSync(join(root, path)),
    );
    return { exitCode, log: all, files: new Map(paths.map((path) => [path, readFileSync(join(root, path), 'utf8')])) };
  }

  async function ourJoin(input: JoinInput) {
    const root = join(directory, 'ours');
    rmSync(root, { recursive: true, force: true });
    const config = join(root, write(root, input, root));
    return runCommand(['join', '--config', config, '--rootfs', root, '--dry-run', '-o', 'json']);
  }

  /** Writes a `join` input below a directory; returns its path relative to it. */
  function write(root: string, { document, discovery, patches }: JoinInput, prefix: string): string {
    for (const [name, text] of Object.entries(patches)) put(join(root, 'patches', name), text);
    mkdirSync(join(root, 'tmp'), { recursive: true });
    put(join(root, 'discovery.conf'), discoveryFile());
    const pins = caPinsOf(api.caPem) ?? [];
    const [token, other] = TOKENS;
    const byToken = { token, apiServerEndpoint: new URL(api.url).host, caCertHashes: pins };
    const kinds = {
      token: { bootstrapToken: byToken },
      'other token': { bootstrapToken: byToken, tlsBootstrapToken: other },
      file: { file: { kubeConfigPath: `${prefix}/discovery.conf` }, tlsBootstrapToken: other },
    };
    put(join(root, 'join.json'), JSON.stringify({ ...document, discovery: kinds[discovery] }).replaceAll('@PATCHES@', `${prefix}/patches`));
    return '/join.json';
  }

  function discoveryFile(): string {
    const cluster = { server: api.url, 'certificate-authority-data': Buffer.from(api.caPem).toString('base64') };
    return JSON.stringify({ apiVersion: 'v1', kind: 'Config', clusters: [{ name: '', cluster }], contexts: [], users: [] });
  }
});

function put(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

function filesOf(stdout: string): ReadonlyMap<string, string> {
  const changes = (JSON.parse(stdout) as PlanDocument).hosts[0]?.changes ?? [];
  return new Map(
    changes.flatMap(({ path, content }) => (typeof path === 'string' && typeof content === 'string' ? [[path, content]] : [])),
  );
}

/** Parses YAML files, and returns other files unchanged; a plan shows no token. */
function comparable(text: string | undefined): unknown {
  if (text === undefined || !/^\w+:/.test(text)) return text;
  return parse(text.replace(/token: (?:\[secret\]|\w{6}\.\w{16})$/m, 'token: hidden'));
}
