import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { DEBIAN_CA_DIRECTORIES } from '../support/control-plane-node.ts';
import { issuerOfOneKey } from '../support/issuer-of-one-key.ts';
import { initRecordings } from '../support/kubeadm-recordings.ts';
import { runCommand } from '../support/run-cli.ts';
import { seededRandom } from '../support/seeded-random.ts';

const directory = mkdtempSync(join(tmpdir(), 'kubeletadm-phases-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

// RSA keys are slow to generate.
const issuer = issuerOfOneKey();
const services = () => ({ certificateIssuer: async () => issuer });

const MANIFESTS = '/etc/kubernetes/manifests';
const KUBELET = '/var/lib/kubelet';
/** The phases that write files, in the order of kubeadm, and the files that the recording has of each. */
const PHASES: readonly (readonly [words: string, files: readonly string[]])[] = [
  ['certs all', []],
  ['kubeconfig all', []],
  ['etcd local', [`${MANIFESTS}/etcd.yaml`]],
  ['control-plane apiserver', [`${MANIFESTS}/kube-apiserver.yaml`]],
  ['control-plane controller-manager', [`${MANIFESTS}/kube-controller-manager.yaml`]],
  ['control-plane scheduler', [`${MANIFESTS}/kube-scheduler.yaml`]],
  ['kubelet-start', ['config.yaml', 'instance-config.yaml', 'kubeadm-flags.env'].map((name) => `${KUBELET}/${name}`)],
];

/** Single phases of `init`, of which kubeadm runs some: those of a recording of kubeadm 1.36.2 for the same input. */
describe('phases run alone after those of kubeadm, in any order', () => {
  // kubeadm replaces rotateCertificates: false, which kubeletadm keeps.
  const recordings = initRecordings().filter(
    ({ input, expected }) => `${MANIFESTS}/etcd.yaml` in (expected.files ?? {}) && !/^rotateCertificates: false$/m.test(input),
  );

  it.each(recordings)('leave the files of kubeadm: $name', { timeout: 120_000 }, async ({ name, input, expected }) => {
    const written: Readonly<Record<string, string>> = {
      ...expected.files,
      ...Object.fromEntries(Object.entries(expected.kubeletFiles).map(([file, text]) => [`${KUBELET}/${file}`, text])),
    };
    const config = join(directory, `${name}.yaml`);
    writeFileSync(config, input);
    const random = seededRandom(Number.parseInt(name, 10));
    const root = join(directory, name);
    for (const path of DEBIAN_CA_DIRECTORIES) mkdirSync(join(root, path), { recursive: true });
    // The certificates are first; other phases do not depend on each other.
    const order = [
      ...PHASES.slice(0, 2),
      ...PHASES.slice(2)
        .map((phase) => [random(), phase] as const)
        .sort(([a], [b]) => a - b)
        .map(([, phase]) => phase),
    ];
    for (const [words, files] of order) {
      if (files.length > 0 && random() < 0.5) {
        for (const path of files) put(join(root, path), written[path] ?? '');
        continue;
      }
      const { code, stderr } = await runCommand(['init', 'phase', ...words.split(' '), '--config', config, '--rootfs', root], {
        services,
      });
      expect(code, `${words}: ${stderr}`).toBe(0);
    }
    for (const [path, text] of Object.entries(written)) expect(readFileSync(join(root, path), 'utf8'), path).toBe(text);
    const pki = readdirSync(join(root, '/etc/kubernetes/pki'), { recursive: true, encoding: 'utf8' });
    // Not each recording has the certificates.
    const { pki: certificates } = expected;
    if (certificates !== undefined && Object.keys(certificates).length > 0)
      expect(pki.filter((path) => path.endsWith('.crt')).sort()).toEqual(Object.keys(certificates).sort());
  });
});

function put(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text, { mode: 0o600 });
}
