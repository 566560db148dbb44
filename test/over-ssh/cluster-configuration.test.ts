import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startLab } from '../../lab/lab.ts';
import type { Lab } from '../../lab/lab-options.ts';
import { startFirstNode } from '../support/first-node.ts';
import { type CliResult, runCommand } from '../support/run-cli.ts';

describe('cluster.configuration of a fleet whose cluster exists', { timeout: 120_000 }, () => {
  let directory: string;
  let lab: Lab;
  const configure = (...lines: readonly string[]): void =>
    writeFileSync(
      join(directory, 'cluster.yaml'),
      `${['apiVersion: kubeadm.k8s.io/v1beta4', 'kind: ClusterConfiguration', ...lines].join('\n')}\n`,
    );
  const run = (...command: readonly string[]): Promise<CliResult> =>
    runCommand([...command, '-f', join(directory, 'fleet.yaml'), '--ssh-config', lab.sshConfig], {
      env: { XDG_STATE_HOME: join(directory, 'state') },
      services: () => ({ canAsk: true, confirm: async () => true }),
    });
  const warnings = ({ stderr }: CliResult): readonly string[] => stderr.split('\n').filter((line) => line.includes('cluster.yaml'));

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'ka-configuration-'));
    lab = await startLab({ directory: join(directory, 'lab'), hosts: 2 });
    await startFirstNode(lab);
    writeFileSync(
      join(directory, 'fleet.yaml'),
      `apiVersion: kubeletadm.dev/v1alpha1\nkind: Fleet\ncluster: {kubeconfig: ${lab.kubeconfig}, configuration: cluster.yaml}\nhosts:\n  - {name: node2}\n`,
    );
  });
  afterAll(async () => {
    await lab?.close();
    rmSync(directory, { recursive: true, force: true });
  });

  it('is compared by plan, apply and fleet drift, with one warning for each differing setting', async () => {
    configure('kubernetesVersion: v1.36.99', 'apiServer: {extraArgs: [{name: audit-log-maxage, value: "30"}]}');
    const expected = [
      expect.stringMatching(
        /^warning: cluster\.yaml declares kubernetesVersion v1\.36\.99, the cluster has v1\.36\.\d+ \(ConfigMap kube-system\/kubeadm-config\); apply changes only the kubelet of an existing control plane\. Run kubeletadm upgrade apply v1\.36\.99 --host HOST/,
      ),
      expect.stringMatching(/^warning: cluster\.yaml declares apiServer\.extraArgs\.audit-log-maxage, which the cluster does not have \(/),
    ];
    for (const command of [['plan'], ['apply'], ['apply', '--yes'], ['fleet', 'drift']]) {
      const result = await run(...command);
      expect(result.code, result.stderr).toBe(0);
      expect(warnings(result), command.join(' ')).toEqual(expected);
    }
  });

  it('does not fail a run if it is invalid, and is not needed', async () => {
    configure('clusterNames: a');
    const invalid = await run('plan');
    expect(invalid.code, invalid.stderr).toBe(0);
    expect(warnings(invalid)).toEqual([
      expect.stringMatching(/^warning: cluster\.yaml was not compared with the cluster: .*unknown field/),
    ]);
    rmSync(join(directory, 'cluster.yaml'));
    expect(warnings(await run('plan'))).toEqual([]);
  });
});
