import { execFileSync } from 'node:child_process';
import { chmodSync, chownSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type LabApiServer, startApiServer } from '../../lab/api-server/server.ts';
import { Secret } from '../../src/base/text/secret.ts';
import { readHostEntries } from '../../src/cli/adapters/host-entries.ts';
import { BOOTSTRAP_GROUP } from '../../src/kubeadm/cluster-objects/bootstrap-rbac.ts';
import { clusterInfoMap, clusterInfoRbac } from '../../src/kubeadm/cluster-objects/cluster-info.ts';
import { kubeletConfigRbac } from '../../src/kubeadm/cluster-objects/kubelet-config-map.ts';
import { kubeadmConfigRbac } from '../../src/kubeadm/phases/upload-config.ts';
import { tokenSecret } from '../../src/kubeadm/token/token-secret.ts';
import type { HostEntry, UserDataFormat } from '../../src/kubeadm/user-data/model.ts';
import { caPinsOf } from '../../src/x509/ca-pin.ts';
import { runCommand } from '../support/run-cli.ts';
import { REPOSITORY } from '../support/source-files.ts';
import { unpackUserData } from '../support/unpack-user-data.ts';

const FORMATS = ['cloud-init', 'butane', 'ignition'] as const satisfies readonly UserDataFormat[];
const TOKEN = 'fedcba.fedcba9876543210';
const URL_OF_JOIN_FILE = 'https://config.example.com/join.yaml';
const BOOTSTRAP = '/etc/kubernetes/bootstrap-kubelet.conf';
const IS_ROOT = process.geteuid?.() === 0;

const temporary = mkdtempSync(join(tmpdir(), 'kubeletadm-user-data-'));
const node = join(temporary, 'node');
const joinFile = join(temporary, 'join.yaml');
let api: LabApiServer;

beforeAll(async () => {
  api = await startApiServer({ controllers: ['bootstrap-signer'] });
  const token = { token: new Secret(TOKEN), usages: ['signing', 'authentication'], groups: [String(BOOTSTRAP_GROUP.name)] };
  api.put(
    ...kubeletConfigRbac('kubelet-config'),
    ...kubeadmConfigRbac(),
    ...clusterInfoRbac(),
    clusterInfoMap({ server: api.url, caPem: api.caPem }),
    tokenSecret(token, new Date()),
    ...['kubelet-config', 'kubeadm-config'].map((name) => ({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name, namespace: 'kube-system' },
      data: name === 'kubelet-config' ? { kubelet: KUBELET } : { ClusterConfiguration: CLUSTER },
    })),
  );
  writeFileSync(
    joinFile,
    `apiVersion: kubeadm.k8s.io/v1beta4
kind: JoinConfiguration
discovery:
  bootstrapToken:
    apiServerEndpoint: ${new URL(api.url).host}
    token: ${TOKEN}
    caCertHashes: ['${caPinsOf(api.caPem)?.[0]}']
nodeRegistration:
  name: node-1
`,
  );
  const { code, stderr } = await runCommand(['join', '--config', joinFile, '--rootfs', node]);
  expect(code, stderr).toBe(0);
});

const KUBELET = 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nclusterDNS: [10.96.0.10]\nmaxPods: 60\n';
const CLUSTER = 'apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\nkubernetesVersion: v1.36.2\n';

afterAll(async () => {
  await api.close();
  rmSync(temporary, { recursive: true, force: true });
});

const userData = (format: UserDataFormat, root: string, ...more: readonly string[]) =>
  runCommand(['config', 'user-data', '--rootfs', root, '--join-file', URL_OF_JOIN_FILE, '-o', format, ...more]);

/** Files and links, without the unit. */
function filesOf(entries: readonly HostEntry[]): readonly HostEntry[] {
  return entries.filter(({ path }) => path !== '/etc/systemd/system/kubeletadm-join.service');
}

describe.each(FORMATS)('user data for %s', (format) => {
  it('gives a host the files of join --rootfs except the token, and join at first boot completes them', async () => {
    const { code, stdout, stderr } = await userData(format, node);
    expect(code, stderr).toBe(0);
    expect(stderr).toBe(`${BOOTSTRAP} is omitted, because this file contains a bootstrap token; join creates the file on the host\n`);
    expect(stdout).not.toContain(TOKEN);

    const host = join(temporary, `host-${format}`);
    const unit = unpackUserData(stdout, format, host);
    const expected = await readHostEntries(node);
    expect(expected.length).toBeGreaterThan(8);
    expect(filesOf(await readHostEntries(host))).toEqual(expected.filter(({ path }) => path !== BOOTSTRAP));
    expect(unit.name).toBe('kubeletadm-join.service');
    expect(unit.text).toMatch(/^ExecStartPre=.* "https:\/\/config\.example\.com\/join\.yaml"$/m);

    // What the unit runs after it has fetched the join file.
    const joined = await runCommand(['join', '--config', joinFile, '--rootfs', host]);
    expect(joined.code, joined.stderr).toBe(0);
    expect(filesOf(await readHostEntries(host))).toEqual(expected);
  });

  it('keeps bytes, modes, links and owners', async () => {
    const root = join(temporary, `tree-${format}`);
    mkdirSync(join(root, 'opt/empty'), { recursive: true });
    mkdirSync(join(root, 'opt/private'), { mode: 0o700 });
    const bytes = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
    const contents = [
      bytes,
      '',
      '\n',
      ' a\n\tb\n\n\n',
      '\t- x',
      'yes',
      '0644',
      'ü\u2028\u0085\r\n',
      '#cloud-config\n---\n...\n',
      'a: "b"\\n',
      '  \n x',
    ];
    for (const [i, content] of contents.entries()) writeFileSync(join(root, `opt/private/${i}`), content);
    writeFileSync(join(root, 'opt/run me; "now" $HOME %h'), '#!/bin/sh\n');
    chmodSync(join(root, 'opt/run me; "now" $HOME %h'), 0o755);
    symlinkSync('../private/0', join(root, 'opt/empty-link'));
    if (IS_ROOT) {
      chownSync(join(root, 'opt/private/3'), 52034, 52035);
      chownSync(join(root, 'opt/private'), 52034, 0);
    }
    const { code, stdout, stderr } = await userData(format, root);
    expect(code, stderr).toBe(0);
    const host = join(temporary, `tree-host-${format}`);
    unpackUserData(stdout, format, host);
    const unpacked = (await readHostEntries(host)).filter(({ path }) => !path.startsWith('/etc'));
    expect(unpacked).toEqual(await readHostEntries(root));
  });
});

describe('config user-data', () => {
  it('refuses the files of a control plane, and prints no part of them', async () => {
    const root = join(temporary, 'control-plane');
    cpSync(node, root, { recursive: true });
    writeFileSync(join(root, 'etc/kubernetes/pki/sa.key'), ['-----BEGIN', 'PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIPTH\n'].join(' '));
    const { code, stdout, stderr } = await userData('ignition', root);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain('/etc/kubernetes/pki/sa.key:1: the file contains a private key');
    expect(stderr).toContain('[USER_DATA_SECRET]');
  });

  it('refuses files that user data cannot contain', async () => {
    const root = join(temporary, 'special');
    mkdirSync(root);
    execFileSync('mkfifo', [join(root, 'pipe')]);
    expect(await userData('ignition', root)).toMatchObject({
      code: 2,
      stdout: '',
      stderr: expect.stringContaining('[USER_DATA_UNUSABLE]'),
    });
    expect(await userData('ignition', joinFile)).toMatchObject({ code: 2, stderr: expect.stringContaining('[INPUT_NOT_A_DIRECTORY]') });
    expect(await userData('ignition', `${root}/x`)).toMatchObject({ code: 2, stderr: expect.stringContaining('[INPUT_UNREADABLE]') });
  });

  it.each(FORMATS)('gives a host a proxy, with which join works: %s', async (format) => {
    const proxy = ['--https-proxy', 'http://proxy.example.com:3128', '--no-proxy', 'localhost,10.0.0.0/8'];
    const { code, stdout, stderr } = await userData(format, node, ...proxy);
    expect(code, stderr).toBe(0);
    const host = join(temporary, `with-proxy-${format}`);
    const { text } = unpackUserData(stdout, format, host);
    const dropIn = readFileSync(join(host, 'etc/systemd/system/kubelet.service.d/http-proxy.conf'), 'utf8');
    expect(dropIn).toContain('\nEnvironment="HTTPS_PROXY=http://proxy.example.com:3128"\nEnvironment="NO_PROXY=localhost,10.0.0.0/8"\n');
    expect(text).toContain('\nEnvironment="HTTPS_PROXY=http://proxy.example.com:3128"\n');
    expect(stdout.includes('[ systemctl, try-restart, containerd.service, crio.service ]')).toBe(format === 'cloud-init');
    const joined = await runCommand(['join', '--config', joinFile, '--rootfs', host]);
    expect(joined.code, joined.stderr).toBe(0);
    expect(readFileSync(join(host, 'etc/systemd/system/kubelet.service.d/http-proxy.conf'), 'utf8')).toBe(dropIn);
  });

  it('writes the CA certificates of the server of the join file', async () => {
    const ca = join(temporary, 'ca.crt');
    writeFileSync(ca, api.caPem);
    const { stdout } = await userData('cloud-init', node, '--join-file-ca', ca);
    const host = join(temporary, 'with-ca');
    const unit = unpackUserData(stdout, 'cloud-init', host);
    expect(readFileSync(join(host, 'etc/kubeletadm/join-file-ca.crt'), 'utf8')).toBe(api.caPem);
    expect(unit.text).toContain(' --cacert /etc/kubeletadm/join-file-ca.crt ');
  });
});

describe('examples/first-boot', () => {
  it.each([
    ['user-data.yaml', 'cloud-init', []],
    ['flatcar.yaml', 'butane', ['--variant', 'flatcar', '--program', '/opt/bin/kubeletadm']],
  ] as const)('%s is the output for the files of the example', async (name, format, options) => {
    const folder = join(REPOSITORY, 'examples/first-boot');
    const root = join(temporary, `example-${name}`);
    cpSync(join(folder, 'node'), root, { recursive: true });
    const own = process.geteuid?.() ?? 0;
    for (const { path } of await readHostEntries(root)) chownSync(join(root, path), own, process.getegid?.() ?? 0);
    for (const { kind, path } of await readHostEntries(root)) chmodSync(join(root, path), kind === 'directory' ? 0o755 : 0o644);
    const { code, stdout } = await userData(format, root, ...options);
    expect(code).toBe(0);
    expect(stdout).toBe(readFileSync(join(folder, name), 'utf8'));
  });
});
