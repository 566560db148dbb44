import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createCa } from '../../lab/api-server/pki.ts';
import { startLab } from '../../lab/lab.ts';
import type { Lab } from '../../lab/lab-options.ts';
import { kubeCluster } from '../../src/kube/adapters/cluster-kube.ts';
import type { Cluster, KubeObject } from '../../src/kube/cluster.ts';
import { startFirstNode } from '../support/first-node.ts';
import { runCommand } from '../support/run-cli.ts';
import { readTree } from '../support/tree.ts';
import { untilTrue } from '../support/until-true.ts';

const PEM = 'var/lib/kubelet/pki/kubelet-client-current.pem';
const MACHINE_ID = 'etc/machine-id';
const ANNOTATION = 'kubeletadm.dev/config-source';
const SOCKET_ANNOTATION = 'kubeadm.alpha.kubernetes.io/cri-socket';
const NODE2 = { commonName: 'system:node:node2', organizations: ['system:nodes'] };
const certificateOf = (pem: string): string => pem.slice(0, pem.indexOf('-----END CERTIFICATE-----') + 26);
const keyOf = (pem: string): string => pem.slice(pem.search(/-----BEGIN [A-Z ]*PRIVATE KEY-----/));

/** node3 is hostile, or was cloned from node2. */
describe('the Node behind a host', { timeout: 120_000 }, () => {
  let directory: string;
  let lab: Lab;
  let admin: Cluster;
  let program: string;
  /** The files of node3 before a test. */
  let honest: { readonly pem: string; readonly machineId: string };
  const rootOf = (name: string): string => lab.hosts.find((host) => host.name === name)?.rootDir ?? '';
  const at = (name: string, path: string): string => join(rootOf(name), path);
  const text = (name: string, path: string): string => readFileSync(at(name, path), 'utf8');
  const shared = (): string[] => ['--ssh-config', lab.sshConfig, '--kubeconfig', lab.kubeconfig];
  /** The files of each host without /proc, whose content changes on its own. */
  const trees = () =>
    lab.hosts.map(({ rootDir }) => Object.fromEntries(Object.entries(readTree(rootDir)).filter(([path]) => !path.startsWith('proc/'))));
  const node = (name: string): Promise<KubeObject | null> => admin.get({ apiVersion: 'v1', kind: 'Node', name });
  /** Everything that a command could have changed on a Node or created for one. */
  // Without the taints of the node lifecycle controller: the kubelet of a clone cannot renew the lease of its own Node.
  const objects = async () => {
    const nodes = (await admin.list({ apiVersion: 'v1', kind: 'Node' })).items.map(({ metadata: { name, labels, annotations }, spec }) => ({
      name,
      labels,
      annotations,
      spec: { ...(spec as object | undefined), taints: undefined },
    }));
    const names = async (apiVersion: string, kind: string, namespace?: string) =>
      (await admin.list({ apiVersion, kind, ...(namespace === undefined ? {} : { namespace }) })).items.map(
        ({ metadata }) => metadata.name,
      );
    return {
      nodes,
      accounts: await names('v1', 'ServiceAccount', 'kube-system'),
      secrets: await names('v1', 'Secret', 'kube-system'),
      roles: await names('rbac.authorization.k8s.io/v1', 'ClusterRole'),
      bindings: await names('rbac.authorization.k8s.io/v1', 'ClusterRoleBinding'),
      ownRoles: await names('rbac.authorization.k8s.io/v1', 'Role', 'kubeletadm-system'),
      ownBindings: await names('rbac.authorization.k8s.io/v1', 'RoleBinding', 'kubeletadm-system'),
    };
  };
  const enable = (...args: string[]) => runCommand(['dynamic', 'enable', ...args, '--program', program, ...shared()]);
  const disable = (...args: string[]) => runCommand(['dynamic', 'disable', ...args, ...shared()]);
  const reset = (...args: string[]) => runCommand(['reset', '--force', '--delete-node', ...shared(), ...args]);
  const renew = (...args: string[]) => runCommand(['certs', 'renew-kubelet', ...shared(), ...args]);

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'ka-identity-'));
    lab = await startLab({ directory, hosts: 3 });
    program = join(directory, 'agent.mjs');
    writeFileSync(program, '#!/usr/bin/env node\nprocess.exit(0);\n');
    admin = kubeCluster({ kubeconfig: { text: readFileSync(lab.kubeconfig, 'utf8'), file: lab.kubeconfig } });
    await startFirstNode(lab);
    const endpoint = lab.server.replace('https://', '');
    const others = ['--host', 'node2', '--host', 'node3', '--ssh-config', lab.sshConfig];
    const joined = await runCommand(['join', endpoint, '--token', lab.token.reveal(), '--ca-cert', lab.caFile, ...others]);
    expect(joined.code, joined.stderr).toBe(0);
    await untilTrue(async () => (await node('node2')) !== null && (await node('node3')) !== null);
    await admin.patch({ apiVersion: 'v1', kind: 'Node', name: 'node2' }, 'merge', {
      metadata: { annotations: { [ANNOTATION]: 'x', [SOCKET_ANNOTATION]: 'unix:///old.sock' } },
    });
    // A host may claim any name: this script prints the one in a file.
    const uname = join(directory, 'bin/uname');
    const [shebang = '', ...rest] = readFileSync(uname, 'utf8').split('\n');
    const hostname = '[ "$1" = -n ] && [ -f "$KUBELETADM_ROOT/hostname-claimed" ] && exec /bin/cat "$KUBELETADM_ROOT/hostname-claimed"';
    writeFileSync(uname, [shebang, hostname, ...rest].join('\n'));
  });
  beforeEach(() => {
    honest = { pem: text('node3', PEM), machineId: text('node3', MACHINE_ID) };
  });
  afterEach(() => {
    writeFileSync(at('node3', PEM), honest.pem);
    writeFileSync(at('node3', MACHINE_ID), honest.machineId);
    rmSync(at('node3', 'hostname-claimed'), { force: true });
  });
  afterAll(async () => {
    await admin?.close();
    await lab?.close();
    rmSync(directory, { recursive: true, force: true });
  });

  function selfSigned(): string {
    const key = join(directory, 'forged.key');
    const request = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', key, '-days', '30'];
    const usage = ['-addext', 'extendedKeyUsage=clientAuth'];
    const cert = execFileSync('openssl', [...request, '-subj', '/O=system:nodes/CN=system:node:node2', ...usage], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    return cert + readFileSync(key, 'utf8');
  }

  async function ofAnotherCluster(): Promise<string> {
    const { certPem, keyPem } = await (await createCa()).issueClient(NODE2);
    return certPem + keyPem;
  }

  /** node3 claims to be node2, with a certificate. */
  const CLAIMS: readonly [string, () => Promise<string> | string, string][] = [
    ['a self-signed certificate', selfSigned, 'not signed by the cluster CA'],
    ["a certificate of another cluster's CA", ofAnotherCluster, 'not signed by the cluster CA'],
    ["node2's certificate without its key", () => certificateOf(text('node2', PEM)), 'does not hold its private key'],
    [
      "node2's certificate with another key",
      () => `${certificateOf(text('node2', PEM))}\n${keyOf(honest.pem)}`,
      'does not hold its private key',
    ],
  ];

  async function claimNode2(pem: string): Promise<void> {
    writeFileSync(at('node3', PEM), pem);
    writeFileSync(at('node3', MACHINE_ID), '');
    writeFileSync(at('node3', 'hostname-claimed'), 'node2\n');
  }

  const COMMANDS: readonly [string, () => Promise<{ code: number; stdout: string; stderr: string }>][] = [
    ['dynamic enable', () => enable('node3')],
    ['dynamic disable', () => disable('node3')],
    ['reset --delete-node', () => reset('--host', 'node3')],
    ['certs renew-kubelet', () => renew('--host', 'node3', '--force')],
    ['upgrade node --kubeconfig', () => runCommand(['upgrade', 'node', '--host', 'node3', ...shared()])],
    ['csr approve', () => runCommand(['csr', 'approve', '--host', 'node3', ...shared()])],
    ['join with labels', () => joinAgain()],
    ['fleet apply with labels', () => applyLabels('node3')],
  ];

  const joinAgain = () =>
    runCommand([
      'join',
      lab.server.replace('https://', ''),
      '--token',
      lab.token.reveal(),
      '--ca-cert',
      lab.caFile,
      '--host',
      'node3',
      '--node-labels',
      'node-role.kubernetes.io/worker=',
      ...shared(),
    ]);

  const applyLabels = (...names: readonly string[]) => applyLabelsWith(['--yes'], ...names);

  /** On a terminal whose operator approves. */
  function applyLabelsWith(options: readonly string[], ...names: readonly string[]) {
    const fleet = join(directory, 'fleet.yaml');
    writeFileSync(
      fleet,
      `apiVersion: kubeletadm.dev/v1alpha1
kind: Fleet
cluster: { kubeconfig: ${lab.kubeconfig} }
hosts:
${names.map((name) => `  - { name: ${name}, labels: { node-role.kubernetes.io/worker: "" } }\n`).join('')}`,
    );
    return runCommand(['fleet', 'apply', ...options, '-f', fleet, '--ssh-config', lab.sshConfig], {
      env: { XDG_STATE_HOME: directory, HOME: directory },
      services: () => ({ canAsk: true, confirm: async () => true }),
    });
  }

  async function expectRefused(run: () => Promise<{ code: number; stdout: string; stderr: string }>, why: string): Promise<void> {
    const before = { trees: trees(), objects: await objects() };
    const { code, stdout, stderr } = await run();
    expect(await objects()).toEqual(before.objects);
    expect(trees()).toEqual(before.trees);
    expect(code, stdout + stderr).toBe(3);
    expect(stderr).toContain(why);
    expect(stderr).toContain('[NODE_NOT_PROVEN]');
  }

  it.each(CLAIMS)('is not accepted from %s', async (_, forge, reason) => {
    await claimNode2(await forge());
    await expectRefused(() => disable('node3'), reason);
  });

  it.each(COMMANDS)('is not accepted, and nothing is written, by %s', async (_, run) => {
    await claimNode2(await ofAnotherCluster());
    await expectRefused(run, 'not signed by the cluster CA');
  });

  it('is rejected for two hosts with the same key, before any write to either', async () => {
    for (const path of [PEM, MACHINE_ID]) copyFileSync(at('node2', path), at('node3', path));
    const before = { trees: trees(), objects: await objects() };
    for (const run of [
      () => enable('node2', 'node3'),
      () => disable('node2', 'node3'),
      () => reset('--host', 'node2', '--host', 'node3'),
      () => disable('node2', 'node3', '--dry-run'),
    ]) {
      const { code, stderr } = await run();
      expect(await objects()).toEqual(before.objects);
      expect(trees()).toEqual(before.trees);
      expect(code, stderr).toBe(3);
      expect(stderr).toMatch(/node2: .*node3.*\[NODE_CLAIMED_TWICE\]/);
      expect(stderr).toMatch(/node3: .*node2.*\[NODE_CLAIMED_TWICE\]/);
    }
  });

  it('is not given to two hosts by fleet apply when one is a clone', async () => {
    for (const path of [PEM, MACHINE_ID]) copyFileSync(at('node2', path), at('node3', path));
    writeFileSync(at('node3', 'hostname-claimed'), 'node2\n');
    const before = trees();
    const { code, stdout, stderr } = await applyLabels('node2', 'node3');
    expect(code, stdout + stderr).not.toBe(0);
    // The later one is rejected; both are rejected when neither was started.
    const refused = ['node2', 'node3'].filter((name) =>
      new RegExp(`${name}: Node node2 is claimed by this host and by node[23].*\\[NODE_CLAIMED_TWICE\\]`).test(stderr),
    );
    expect(refused.length, stderr).toBeGreaterThan(0);
    const after = trees();
    for (const name of refused) {
      const index = lab.hosts.findIndex((host) => host.name === name);
      expect(after[index]).toEqual(before[index]);
    }
    expect((await node('node3'))?.metadata.labels).not.toHaveProperty(['node-role.kubernetes.io/worker']);
  });

  it.each([
    ['permitted by --max-fail', ['--yes', '--max-fail', '2']],
    ['approved by the operator', []],
  ])('is not changed by fleet apply when a clone was found before the first change, even if refusals are %s', async (_, options) => {
    for (const path of [PEM, MACHINE_ID]) copyFileSync(at('node2', path), at('node3', path));
    writeFileSync(at('node3', 'hostname-claimed'), 'node2\n');
    const before = { trees: trees(), objects: await objects() };
    const { stdout, stderr } = await applyLabelsWith([...options, '--parallel', '1'], 'node2', 'node3');
    expect(await objects()).toEqual(before.objects);
    expect(trees()).toEqual(before.trees);
    expect(stdout).toMatch(/2 hosts: 2 refused\.\n$/);
    for (const name of ['node2', 'node3'])
      expect(stderr).toMatch(new RegExp(`${name}: Node node2 is claimed by .*\\[NODE_CLAIMED_TWICE\\]`));
  });

  it('is identified by its certificate and key', async () => {
    const { code, stdout, stderr } = await enable('node3', '--dry-run');
    expect(code, stderr).toBe(0);
    expect(stdout).toContain('kubeletadm:agent:node3');
    expect((await reset('--host', 'node3', '--dry-run')).stdout).toContain('- Node node3');
  });

  it('requires a machine-id on the host, and the message names the command that creates one', async () => {
    writeFileSync(at('node3', MACHINE_ID), '\n');
    const { code, stderr } = await disable('node3', '--dry-run');
    expect(code, stderr).toBe(3);
    expect(stderr).toMatch(/node3: \/etc\/machine-id is empty.*systemd-machine-id-setup.*\[MACHINE_ID_EMPTY\]/);
  });

  describe('with a node name from the operator', () => {
    it('is rejected when the certificate of the host is for another Node', async () => {
      const { code, stderr } = await disable('node3', '--node-name', 'node2');
      expect(code, stderr).toBe(3);
      expect(stderr).toMatch(/node3: .*certificate for Node node3.*node2.*\[NODE_NAME_CONFLICT\]/);
    });

    it('is accepted when machine-id and address match, and no certificate is available', async () => {
      rmSync(at('node3', PEM));
      const { code, stdout, stderr } = await enable('node3', '--node-name', 'node3', '--dry-run');
      expect(code, stderr).toBe(0);
      expect(stdout).toContain('kubeletadm:agent:node3');
      const without = await enable('node3', '--dry-run');
      expect(without.code).toBe(3);
      expect(without.stderr).toMatch(/no kubelet client certificate.*--node-name.*\[NODE_NOT_PROVEN\]/);
    });

    it('is rejected when the machine-id is empty or that of another host', async () => {
      rmSync(at('node3', PEM));
      writeFileSync(at('node3', MACHINE_ID), '');
      expect((await disable('node3', '--node-name', 'node3', '--dry-run')).stderr).toContain('[MACHINE_ID_EMPTY]');
      writeFileSync(at('node3', MACHINE_ID), text('node1', MACHINE_ID));
      const { code, stderr } = await disable('node3', '--node-name', 'node3', '--dry-run');
      expect(code).toBe(3);
      expect(stderr).toContain('[NodeOfAnotherHost]');
    });

    it('is rejected when a clone has the machine-id but none of the addresses', async () => {
      rmSync(at('node3', PEM));
      copyFileSync(at('node2', MACHINE_ID), at('node3', MACHINE_ID));
      const { code, stderr } = await disable('node3', '--node-name', 'node2', '--dry-run');
      expect(code, stderr).toBe(3);
      expect(stderr).toMatch(/Node node2 has the addresses 192\.168\.99\.12.*192\.168\.99\.13.*\[NODE_ADDRESS_MISMATCH\]/);
    });
  });

  it('gets another certificate when the operator names it', async () => {
    rmSync(at('node3', PEM));
    const refused = await renew('--host', 'node3');
    expect(refused.code, refused.stderr).toBe(3);
    expect(refused.stderr).toMatch(/--node-name.*\[NODE_NOT_PROVEN\]/);
    const { code, stderr } = await renew('--host', 'node3', '--node-name', 'node3');
    expect(code, stderr).toBe(0);
    honest = { ...honest, pem: text('node3', PEM) };
    expect((await disable('node3', '--dry-run')).code).toBe(0);
  });

  it('cannot be identified without openssl, and the message has a hint', async () => {
    const ssh = join(directory, 'bin/openssl');
    writeFileSync(ssh, '#!/bin/sh\necho "openssl: not found" >&2\nexit 127\n', { mode: 0o755 });
    try {
      const { code, stderr } = await disable('node3', '--dry-run');
      expect(code, stderr).toBe(3);
      expect(stderr).toMatch(/openssl.*--node-name.*\[NODE_NOT_PROVEN\]/);
      expect((await disable('node3', '--node-name', 'node3', '--dry-run')).code).toBe(0);
    } finally {
      rmSync(ssh);
    }
  });
});
