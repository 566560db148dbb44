import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createCa, type KeyPair } from '../../lab/api-server/pki.ts';
import { clusterInfoKubeconfig } from '../../src/kube/kubeconfig-render.ts';
import { caDirectoriesIn } from '../../src/kubeadm/control-plane/model.ts';
import { filesLeft, kubeadmHost } from '../support/kubeadm-host.ts';
import { type JoinPlaneInput, joinPlaneInputs } from '../support/kubeadm-inputs/join-control-plane.ts';
import { findRealBinaries, type RealApiServer, startRealApiServer } from '../support/real-apiserver.ts';
import { kubeadmVersion } from '../support/real-kubeadm.ts';
import { requirement } from '../support/requirement.ts';
import { runCommand } from '../support/run-cli.ts';

const binaries = findRealBinaries();

function whyNot(): string | null {
  if (typeof binaries === 'string') return binaries;
  if (binaries.kubeadm === null) return 'kubeadm not found next to kube-apiserver';
  if (process.getuid?.() !== 0) return 'kubeadm writes files as root only';
  const version = kubeadmVersion(binaries.kubeadm);
  return version.startsWith('v1.36.') ? null : `kubeadm is ${version}, not 1.36`;
}

const RUNS = Number(process.env.KUBELETADM_RUNS ?? 4);
const CERTIFICATE_KEY = 'e6a2eb8581237ab72a4f494f30285ec12a9694d750b9785706a83bfcbbbd2204';
const TOKEN = 'abcdef.0123456789abcdef';
const PATCHES = '/srv/patches';

/** Files that kubeadm leaves to packages, or does not have. */
const OURS = /^\/(?:etc\/systemd\/system\/kubelet\.service|usr\/lib\/systemd\/|lib\/systemd\/|var\/lib\/kubelet\/kubeletadm-node\.yaml$)/;

/**
 * Both programs get the same cluster, whose first control plane kubeadm created at a real API server, and the
 * same CA and certificates to download.
 */
describe.skipIf(requirement('joining a control plane compared with kubeadm', whyNot()))('an additional control plane', () => {
  const directory = mkdtempSync(join(tmpdir(), 'kubeletadm-planes-'));
  const caDirectories = caDirectoriesIn(existsSync);
  const discovery = join(directory, 'discovery.conf');
  let api: RealApiServer;
  let etcd: KeyPair & { readonly ca: string };

  beforeAll(async () => {
    if (typeof binaries === 'string') return;
    api = await startRealApiServer(binaries);
    writeFileSync(discovery, clusterInfoKubeconfig({ server: api.url, caPem: api.ca.certPem }));
    const ca = await createCa();
    etcd = { ...(await ca.issueClient({ commonName: 'apiserver' })), ca: ca.certPem };
  }, 120_000);
  afterAll(async () => {
    await api?.close();
    rmSync(directory, { recursive: true, force: true });
  });

  /** The cluster as its first control plane leaves it, with everything that a join needs. */
  async function makeCluster(kubeadm: string, { cluster, kubelet }: JoinPlaneInput): Promise<string | null> {
    const first = kubeadmHost(kubeadm, join(directory, 'first'), caDirectories);
    const { certificatesDir = '/etc/kubernetes/pki', etcd: declared } = cluster as {
      certificatesDir?: string;
      etcd?: { external?: { caFile: string; certFile: string; keyFile: string } };
    };
    first.put(`${certificatesDir}/ca.crt`, api.ca.certPem);
    first.put(`${certificatesDir}/ca.key`, api.ca.keyPem);
    const { external } = declared ?? {};
    if (external !== undefined) {
      first.put(external.caFile, etcd.ca);
      first.put(external.certFile, etcd.certPem);
      first.put(external.keyFile, etcd.keyPem);
    }
    first.put('/credentials.conf', api.adminKubeconfig());
    const documents = [
      {
        apiVersion: 'kubeadm.k8s.io/v1beta4',
        kind: 'InitConfiguration',
        certificateKey: CERTIFICATE_KEY,
        bootstrapTokens: [{ token: TOKEN, ttl: '0s' }],
        localAPIEndpoint: { advertiseAddress: '192.168.56.10' },
        nodeRegistration: { name: 'cp-1', criSocket: 'unix:///run/x.sock' },
      },
      { apiVersion: 'kubeadm.k8s.io/v1beta4', kind: 'ClusterConfiguration', ...cluster },
      { apiVersion: 'kubelet.config.k8s.io/v1beta1', kind: 'KubeletConfiguration', ...kubelet },
    ];
    first.put('/init.yaml', documents.map((each) => JSON.stringify(each)).join('\n---\n'));
    const as = ['--config', '/init.yaml', '--kubeconfig', '/credentials.conf'];
    return (
      (await first.kubeadm('init', 'phase', 'certs', 'all', '--config', '/init.yaml')) ??
      (await first.kubeadm('init', 'phase', 'upload-config', 'all', ...as)) ??
      (await first.kubeadm('init', 'phase', 'upload-certs', '--upload-certs', ...as)) ??
      first.kubeadm('init', 'phase', 'bootstrap-token', ...as)
    );
  }

  function joinConfiguration({ join: own, localAPIEndpoint }: JoinPlaneInput, patches: string): string {
    const document = {
      apiVersion: 'kubeadm.k8s.io/v1beta4',
      kind: 'JoinConfiguration',
      ...own,
      controlPlane: { localAPIEndpoint, certificateKey: CERTIFICATE_KEY },
      discovery: { file: { kubeConfigPath: discovery }, tlsBootstrapToken: TOKEN },
    };
    return JSON.stringify(document).replaceAll('@PATCHES@', patches);
  }

  it('gets the same files as from kubeadm', { timeout: 60_000 + RUNS * 15_000 }, async () => {
    let [controlPlanes, compared, refused] = [0, 0, 0];
    const property = fc.asyncProperty(joinPlaneInputs, async (input) => {
      const kubeadm = (binaries as Exclude<typeof binaries, string>).kubeadm as string;
      // A cluster that kubeadm did not create has no other control planes.
      if ((await makeCluster(kubeadm, input)) !== null) return;
      const theirs = kubeadmHost(kubeadm, join(directory, 'theirs'), caDirectories);
      theirs.put(discovery, clusterInfoKubeconfig({ server: api.url, caPem: api.ca.certPem }));
      theirs.put('/join.yaml', joinConfiguration(input, PATCHES));
      const own = join(directory, 'own');
      rmSync(own, { recursive: true, force: true });
      for (const path of [...caDirectories, '/patches', '/root']) mkdirSync(join(own, path), { recursive: true });
      for (const path of caDirectories) mkdirSync(join(own, 'root', path), { recursive: true });
      for (const [name, text] of Object.entries(input.patches)) {
        theirs.put(`${PATCHES}/${name}`, text);
        writeFileSync(join(own, 'patches', name), text);
      }
      writeFileSync(join(own, 'join.yaml'), joinConfiguration(input, join(own, 'patches')));
      const refusal =
        (await theirs.kubeadm('join', 'phase', 'control-plane-prepare', 'all', '--config', '/join.yaml')) ??
        (await theirs.kubeadm('join', 'phase', 'kubelet-start', '--config', '/join.yaml'));
      const ours = await runCommand(['join', '--config', join(own, 'join.yaml'), '--rootfs', join(own, 'root')]);
      expect(ours.code === 0, `${ours.stderr}${refusal}`).toBe(refusal === null);
      if (refusal !== null) {
        refused++;
        return;
      }
      for (const path of [discovery, '/join.yaml', PATCHES]) rmSync(join(theirs.root, path), { recursive: true, force: true });
      const [desired, found] = [filesLeft(theirs.root), filesLeft(join(own, 'root'))];
      const written = [...found.keys()].filter((path) => !OURS.test(path));
      expect(written).toEqual([...desired.keys()]);
      for (const [path, content] of desired) expect(found.get(path), path).toEqual(content);
      controlPlanes++;
      compared += desired.size;
    });
    await fc.assert(property, { numRuns: RUNS, seed: 1362, endOnFailure: true });
    console.log(
      `${RUNS} clusters, ${controlPlanes} control planes, ${refused} refused by both; ${compared} files compared with kubeadm, all equal`,
    );
  });
});
