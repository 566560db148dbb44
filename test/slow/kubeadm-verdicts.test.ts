import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import type { PlanDocument } from '../../src/host/plan/document.ts';
import { runCommand } from '../support/run-cli.ts';

/**
 * Results of kubeadm 1.36.2 for inputs of all kinds, one line per case: the rejected inputs, and the values
 * written for the accepted ones. Found by running both programs on the same input.
 */

const temporary = mkdtempSync(join(tmpdir(), 'kubeletadm-verdicts-'));
afterAll(() => rmSync(temporary, { recursive: true, force: true }));

interface Input {
  readonly init?: string;
  readonly node?: string;
  readonly cluster?: string;
  readonly kubelet?: string;
  /** Files of a directory of patches. */
  readonly patches?: Readonly<Record<string, string>>;
}

let runs = 0;

async function dryRun({ init = '', node = '', cluster = '', kubelet, patches }: Input) {
  const directory = join(temporary, String(runs++));
  mkdirSync(join(directory, 'patches'), { recursive: true });
  for (const [name, text] of Object.entries(patches ?? {})) writeFileSync(join(directory, 'patches', name), text);
  const text = [
    'apiVersion: kubeadm.k8s.io/v1beta4\nkind: InitConfiguration',
    ...(init === '' ? [] : [init]),
    ...(patches === undefined ? [] : [`patches: {directory: ${directory}/patches}`]),
    `nodeRegistration: {name: cp-1${node === '' ? '' : `, ${node}`}}`,
    '---\napiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\nkubernetesVersion: v1.36.2',
    // The keys are irrelevant for these cases, and RSA keys take longer to generate.
    'encryptionAlgorithm: ECDSA-P256',
    ...(cluster === '' ? [] : [cluster]),
    ...(kubelet === undefined ? [] : [`---\napiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n${kubelet}`]),
  ].join('\n');
  writeFileSync(join(directory, 'input.yaml'), `${text}\n`);
  const argv = ['init', '--config', join(directory, 'input.yaml'), '--rootfs', join(directory, 'root'), '--dry-run', '-o', 'json'];
  return runCommand(argv);
}

/** The kubelet's files by name; config.yaml and the uploaded configuration are parsed. */
async function written(input: Input) {
  const { code, stdout, stderr } = await dryRun(input);
  expect(code, stderr).toBe(0);
  const plan = JSON.parse(stdout) as PlanDocument;
  const files = Object.fromEntries(
    (plan.hosts[0]?.changes ?? []).flatMap(({ path, content }) =>
      typeof path === 'string' && path.startsWith('/var/lib/kubelet/') && typeof content === 'string'
        ? [[path.slice('/var/lib/kubelet/'.length), content]]
        : [],
    ),
  );
  const objects = plan.cluster.changes.map(({ object }) => object as { data?: { kubelet?: string } });
  const uploaded = objects.find(({ data }) => data?.kubelet !== undefined)?.data?.kubelet ?? '';
  return {
    files,
    config: parse(files['config.yaml'] ?? '', { intAsBigInt: true }) as Record<string, unknown>,
    uploaded: parse(uploaded, { intAsBigInt: true }) as Record<string, unknown>,
    warnings: plan.warnings.map(({ code: id, message }) => `${message} [${id}]`),
  };
}

describe('init rejects the inputs that kubeadm 1.36.2 rejects', () => {
  it.each<[string, Input, string]>([
    ['a patch of an unknown type', { patches: { 'kubeletconfiguration+foo.yaml': 'maxPods: 5\n' } }, 'PATCH_FILE_TYPE'],
    ['a patch that is not YAML', { patches: { 'kubeletconfiguration.yaml': 'a: [\n' } }, 'CONFIG_SYNTAX'],
    ['a patch that is not YAML, of another component', { patches: { 'etcd.yaml': 'a: [\n' } }, 'CONFIG_SYNTAX'],
    ['text after a patch separator', { patches: { 'kubeletconfiguration.yaml': 'a: 1\n--- b\n' } }, 'PATCH_FILE_SEPARATOR'],
  ])('%s', async (_, input, code) => {
    const { code: exit, stdout, stderr } = await dryRun(input);
    expect([exit, stdout]).toEqual([2, '']);
    expect(stderr).toMatch(new RegExp(`patches/.* \\[${code}\\]\n$`));
  });
});

describe('init accepts the inputs that kubeadm 1.36.2 accepts', () => {
  it('control-plane phases in skipPhases', async () => {
    expect((await written({ init: 'skipPhases: [addon/kube-proxy, addon]' })).files).toHaveProperty(['config.yaml']);
  });

  it('skipPhases, except unknown phases', async () => {
    const { code, stderr } = await dryRun({ init: 'skipPhases: [addons]' });
    expect([code, stderr]).toEqual([2, expect.stringContaining('init has no phase addons')]);
  });

  it('a patch directory with files of other kinds, which are ignored', async () => {
    const { config } = await written({ patches: { 'kubeletconfiguration.yaml': 'maxPods: 5\n', 'notes.txt': '\0' } });
    expect(config.maxPods).toBe(5n);
  });

  it('flags unknown to the kubelet, while no kubelet is installed', async () => {
    const { files, warnings } = await written({ node: 'kubeletExtraArgs: [{name: z, value: "1"}, {name: a, value: "2"}]' });
    expect(files['kubeadm-flags.env']).toBe('KUBELET_KUBEADM_ARGS="--hostname-override=cp-1 --z=1 --a=2"\n');
    expect(warnings).toContain(
      'kubeletExtraArgs z: a 1.36 kubelet has no flag --z. Check the spelling; kubelet --help lists the flags [KUBELET_FLAG_UNKNOWN]',
    );
  });

  it('values that fail at kubelet startup, while no kubelet is installed', async () => {
    const { config, warnings } = await written({ kubelet: 'featureGates: {NotAGate: true}\nevictionHard: {memory.available: lots}' });
    expect(config).toMatchObject({ featureGates: { NotAGate: true }, evictionHard: { 'memory.available': 'lots' } });
    const validated = warnings.filter((warning) => /^(?:featureGates|evictionHard)\[/.test(warning));
    expect(validated.map((warning) => warning.replace(/^.* /, '')).sort()).toEqual([
      '[KUBELET_START_EVICTION_VALUE]',
      '[KUBELET_UNKNOWN_GATE]',
    ]);
  });

  it.each([
    ['unix:////run//x.sock', 'unix:////run//x.sock'],
    ['unix:///run/a b.sock', 'unix:///run/a b.sock'],
    ['/run/x.sock', 'unix:///run/x.sock'],
  ])('criSocket %s', async (socket, expected) => {
    const { files } = await written({ node: `criSocket: "${socket}"` });
    expect(files['instance-config.yaml']).toBe(`containerRuntimeEndpoint: "${expected}"\n`);
  });
});

describe('init writes the same as kubeadm 1.36.2', () => {
  it.each([
    ['/etc//pki/', '/etc/pki/ca.crt'],
    ['/etc/../pki', '/pki/ca.crt'],
    ['/', '/ca.crt'],
  ])('for certificatesDir %s', async (directory, expected) => {
    const { config, uploaded } = await written({ cluster: `certificatesDir: ${directory}` });
    expect(config).toMatchObject({ authentication: { x509: { clientCAFile: expected } } });
    expect(uploaded).toMatchObject({ authentication: { x509: { clientCAFile: expected } } });
  });

  it("the user's resolvConf, regardless of the host", async () => {
    const resolvConf = '/run/systemd/resolve/resolv.conf';
    const { config, uploaded, warnings } = await written({ kubelet: `resolvConf: ${resolvConf}` });
    expect([config.resolvConf, uploaded.resolvConf]).toEqual([resolvConf, resolvConf]);
    expect(warnings.filter((warning) => warning.endsWith('[RESOLV_CONF]'))).toHaveLength(1);
  });

  it.each(['9007199254740993', '9223372036854775807'])('the integer %s, patched and unpatched', async (text) => {
    const { config, uploaded } = await written({
      kubelet: `podPidsLimit: ${text}`,
      patches: { 'kubeletconfiguration.yaml': `maxOpenFiles: ${text}\n` },
    });
    expect([config.podPidsLimit, config.maxOpenFiles, uploaded.podPidsLimit]).toEqual([BigInt(text), BigInt(text), BigInt(text)]);
  });

  it('with the gate NodeLocalCRISocket off: the socket as a flag', async () => {
    const { files, config, warnings } = await written({ cluster: 'featureGates: {NodeLocalCRISocket: false}' });
    expect(files['kubeadm-flags.env']).toBe(
      'KUBELET_KUBEADM_ARGS="--container-runtime-endpoint=unix:///var/run/containerd/containerd.sock --hostname-override=cp-1"\n',
    );
    expect(files).not.toHaveProperty(['instance-config.yaml']);
    expect(config.containerRuntimeEndpoint).toBe('');
    expect(warnings.filter((warning) => warning.endsWith('[CONFIG_DEPRECATED_FEATURE_GATE]'))).toHaveLength(1);
  });
});
