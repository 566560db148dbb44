import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { startLab } from '../../lab/lab.ts';
import type { Lab } from '../../lab/lab-options.ts';
import { kubeCluster } from '../../src/kube/adapters/cluster-kube.ts';
import type { Cluster } from '../../src/kube/cluster.ts';
import { startFirstNode } from '../support/first-node.ts';
import { runCommand } from '../support/run-cli.ts';
import { readTree } from '../support/tree.ts';

const BINDING = { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRoleBinding' } as const;
const NODE = { apiVersion: 'v1', kind: 'Node', name: 'node2' } as const;

describe('join', { timeout: 120_000 }, () => {
  let directory: string;
  let lab: Lab;
  let admin: Cluster;
  const at = (path: string): string => join(lab.hosts[1]?.rootDir ?? '', path);
  const tree = () => readTree(lab.hosts[1]?.rootDir ?? '');
  const joining = (...args: string[]) =>
    runCommand([
      'join',
      '--config',
      join(directory, 'join.yaml'),
      '--ca-cert',
      lab.caFile,
      '--ssh-config',
      lab.sshConfig,
      '--host',
      'node2',
      ...args,
    ]);

  beforeEach(async () => {
    directory = mkdtempSync(join(tmpdir(), 'ka-join-'));
    lab = await startLab({ directory, hosts: 2 });
    admin = kubeCluster({ kubeconfig: { text: readFileSync(lab.kubeconfig, 'utf8'), file: lab.kubeconfig } });
    await startFirstNode(lab);
    writeFileSync(
      join(directory, 'join.yaml'),
      `apiVersion: kubeadm.k8s.io/v1beta4
kind: JoinConfiguration
discovery:
  bootstrapToken:
    token: ${lab.token.reveal()}
    apiServerEndpoint: ${lab.server.replace('https://', '')}
    unsafeSkipCAVerification: true
timeouts:
  tlsBootstrap: 6s
`,
    );
  });
  afterEach(async () => {
    await admin.close();
    await lab.close();
    rmSync(directory, { recursive: true, force: true });
  });

  it('waits until the Node is Ready, and sets the labels that a kubelet may not set itself', async () => {
    const marks = ['--node-labels', 'node-role.kubernetes.io/worker=,pool=edge', '--wait-ready'];
    const before = tree();
    const refused = await joining(...marks);
    expect(refused.code, refused.stderr).toBe(3);
    expect(refused.stderr).toContain('a kubelet must not set the label node-role.kubernetes.io/worker on its own Node');
    expect(tree()).toEqual(before);
    const { code, stderr } = await joining(...marks, '--kubeconfig', lab.kubeconfig);
    expect(code, stderr).toBe(0);
    expect((await admin.get(NODE))?.metadata.labels).toMatchObject({ pool: 'edge', 'node-role.kubernetes.io/worker': '' });
    expect(readFileSync(at('var/lib/kubelet/kubeadm-flags.env'), 'utf8')).toBe('KUBELET_KUBEADM_ARGS="--node-labels=pool=edge"\n');
    const again = await joining(...marks, '--kubeconfig', lab.kubeconfig, '--dry-run', '--exit-code');
    expect(again.code, again.stdout).toBe(0);
  });

  it('reports that its CSR is not approved, leaves no token, and succeeds once it can be approved', async () => {
    await admin.delete({ ...BINDING, name: 'kubeadm:node-autoapprove-bootstrap' });
    const { code, stderr } = await joining();
    expect(code).toBe(1);
    expect(stderr).toMatch(/node2: kubelet-wait-bootstrap: .* of system:bootstrap:[a-z0-9]{6} is pending\..*\[BOOTSTRAP_TIMEOUT\]/);
    expect(stderr).toContain(
      'names one of its groups: system:bootstrappers, system:bootstrappers:kubeadm:default-node-token, system:authenticated',
    );
    expect(Object.keys(tree())).not.toContain('etc/kubernetes/bootstrap-kubelet.conf');
    const roleRef = {
      apiGroup: 'rbac.authorization.k8s.io',
      kind: 'ClusterRole',
      name: 'system:certificates.k8s.io:certificatesigningrequests:nodeclient',
    };
    const subjects = [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: 'system:bootstrappers' }];
    await admin.create({ ...BINDING, metadata: { name: 'late' }, roleRef, subjects });
    const again = await joining();
    expect(again.code, again.stderr).toBe(0);
    expect(await admin.get(NODE)).not.toBeNull();
  });

  it('takes over the name of a dead node only with --take-over', async () => {
    await admin.create({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'node2' } });
    const before = tree();
    const { code, stderr } = await joining();
    expect(code).toBe(3);
    expect(stderr).toMatch(/Node node2 already exists and is not Ready .*add --take-over/);
    expect(tree()).toEqual(before);
    const taken = await joining('--take-over', '--wait-ready=20s');
    expect(taken.code, taken.stderr).toBe(0);
    expect((await joining('--dry-run', '--exit-code')).code).toBe(0);
  });
});
