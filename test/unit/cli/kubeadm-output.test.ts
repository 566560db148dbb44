import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Secret } from '../../../src/base/text/secret.ts';
import { initDone, joinDone, readsClusterConfig, upgradeDone, uploadedCertificates } from '../../../src/cli/kubeadm-output.ts';
import { renameCommands } from '../../../src/cli/program-name.ts';
import type { Change } from '../../../src/host/plan/change.ts';
import { BOOTSTRAP_CONF } from '../../../src/kube/well-known.ts';
import { joinCommand } from '../../../src/kubeadm/token/join-command.ts';
import { kubeadmPlanText } from '../../../src/kubeadm/upgrade/kubeadm-plan-text.ts';
import { KUBEADM_DRY_RUN } from '../../support/kubeadm-dry-run.ts';
import { REPOSITORY } from '../../support/source-files.ts';

const KEY = 'e6a2eb8581237ab72a4f494f30285ec12a9694d750b9785706a83bfcbbbd2204';
const TOKENS = ['abcdef.0123456789abcdef', 'ghijkl.0123456789abcdef'] as const;
const BOOTSTRAP: Change = {
  kind: 'write-file',
  path: BOOTSTRAP_CONF,
  content: '',
  mode: 0o600,
  owner: 'root:root',
  before: null,
  action: 'create',
  reason: 'does not exist',
};
const LEARNER: Change = { kind: 'add-etcd-learner', member: 'cp2', peerURL: 'https://10.0.0.2:2380', reason: 'does not exist' };
const recorded = (name: string): string => readFileSync(join(REPOSITORY, 'test/fixtures/kubeadm-1.36.2/stdout', name), 'utf8');

/** The last lines of init with two tokens. @param certificateKey undefined: the cluster has no endpoint for control planes */
function init(server: string, certificateKey?: string | null): string {
  const apiServer = { server: `https://${server}`, caPem: KUBEADM_DRY_RUN.caPem };
  const commands = new Map<string, 'worker' | 'control-plane'>();
  for (const text of TOKENS) {
    const token = new Secret(text);
    const key = certificateKey == null ? null : new Secret(certificateKey);
    if (certificateKey !== undefined) commands.set(joinCommand(apiServer, token, { certificateKey: key }).reveal(), 'control-plane');
    commands.set(joinCommand(apiServer, token).reveal(), 'worker');
  }
  return renameCommands(initDone(commands, certificateKey != null), 'kubeadm').replaceAll(/sha256:[0-9a-f]{64}/g, 'sha256:PIN');
}

describe('the standard output of kubeadm', () => {
  it('of init: its last lines', () => {
    expect(init('10.0.0.10:6443')).toBe(recorded('init.txt'));
    expect(init('api.example:6443', null)).toBe(recorded('init-endpoint.txt'));
    expect(init('api.example:6443', KEY)).toBe(recorded('init-upload-certs.txt'));
  });

  it('of join: its last lines', () => {
    expect(joinDone('worker', [BOOTSTRAP])).toBe(recorded('join.txt'));
    expect(joinDone('control-plane', [BOOTSTRAP, LEARNER])).toBe(recorded('join-control-plane.txt'));
    expect(joinDone('control-plane', [BOOTSTRAP])).toBe(recorded('join-control-plane.txt').replace(/^\* A new etcd member.*$/m, ''));
    const withoutRequest = (name: string): string => recorded(name).replace(/^\* (?:Certificate|The Kubelet was).*\n/gm, '');
    expect(joinDone('worker', [LEARNER])).toBe(withoutRequest('join.txt'));
    expect(joinDone('control-plane', [LEARNER])).toBe(withoutRequest('join-control-plane.txt'));
  });

  it('of upload-certs: the key is the last line', () => {
    expect(uploadedCertificates(KEY).trimEnd().split('\n').slice(1)).toEqual(['[upload-certs] Using certificate key:', KEY]);
    expect(uploadedCertificates(null)).not.toContain('key:');
  });

  it('of upgrade apply: its last lines', () => {
    expect(upgradeDone('v1.36.2')).toMatch(
      /^\n\[upgrade\] SUCCESS! A control plane node of your cluster was upgraded to "v1\.36\.2"\.\n\n/,
    );
  });

  it('of upgrade plan', () => {
    const both = (version: string) => new Map([[version, ['other-cp', 'cp1']]]);
    const upgrade = {
      description: 'version in the v1.35 series',
      ...{ from: '1.35.6', target: 'v1.36.2', etcd: '3.6.8-0', coredns: 'v1.14.2', kubeadm: 'v1.36.2' },
    };
    const kubelets = new Map([
      ['v1.35.6', ['cp1']],
      ['v1.34.1', ['other-cp', 'worker1']],
    ]);
    const components = { apiServers: both('v1.35.6'), controllerManagers: both('v1.35.6'), schedulers: both('v1.35.6') };
    const plan = {
      ...{ clusterVersion: '1.35.6', program: 'v1.36.2', etcdUpgrade: true, upgrades: [upgrade], complete: true },
      releases: new Map([
        ['stable', 'v1.36.2'],
        ['stable-1.35', 'v1.36.2'],
      ]),
      running: { ...components, etcd: both('3.6.6-0'), kubelets, coredns: 'v1.13.1' },
      configVersions: [
        { group: 'kubeproxy.config.k8s.io', current: 'v1alpha1', preferred: 'v1alpha1' },
        { group: 'kubelet.config.k8s.io', current: 'v1beta1', preferred: 'v1beta1' },
      ],
    };
    const checks = `[preflight] Running pre-flight checks.\n${readsClusterConfig('upgrade/config')}[upgrade] Running cluster health checks\n`;
    expect(checks + kubeadmPlanText(plan)).toBe(recorded('upgrade-plan.txt'));
  });
});
