import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startLab } from '../../lab/lab.ts';
import type { Lab } from '../../lab/lab-options.ts';
import { startFirstNode } from '../support/first-node.ts';
import { type CliResult, runCommand } from '../support/run-cli.ts';

const CONFIG = 'var/lib/kubelet/config.yaml';

describe('a fleet file with an error', { timeout: 120_000 }, () => {
  let directory: string;
  let lab: Lab;
  const config = (host: number): string => {
    const file = join(lab.hosts[host - 1]?.rootDir ?? '', CONFIG);
    return existsSync(file) ? readFileSync(file, 'utf8') : '';
  };
  const starts = (): readonly number[] => lab.hosts.map(({ kubeletStarts }) => kubeletStarts());
  const fleet = (groups: string, head = ''): string => {
    const file = join(directory, 'fleet.yaml');
    writeFileSync(
      file,
      `apiVersion: kubeletadm.dev/v1alpha1
kind: Fleet
${head}cluster: {kubeconfig: ${lab.kubeconfig}}
groups:
${groups}hosts:
  - {name: node2, groups: [core]}
  - {name: node3, groups: [edge]}
`,
    );
    return file;
  };
  const group = (name: string, field: string): string => `  - name: ${name}\n    kubeletConfiguration:\n      ${field}\n`;
  const run = (command: readonly string[], file: string, services = {}): Promise<CliResult> =>
    runCommand([...command, '-f', file, '--ssh-config', lab.sshConfig], {
      env: { XDG_STATE_HOME: join(directory, 'state') },
      services: () => services,
    });
  const NO_CONTACT = {
    connectHost: async () => {
      throw new Error('a host was contacted');
    },
  };

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'ka-invalid-'));
    lab = await startLab({ directory: join(directory, 'lab'), hosts: 3 });
    await startFirstNode(lab);
    const joined = await run(['apply', '-y'], fleet(group('core', 'maxPods: 70') + group('edge', 'maxPods: 60')));
    expect(joined.code, joined.stderr).toBe(0);
  });
  afterAll(async () => {
    await lab?.close();
    rmSync(directory, { recursive: true, force: true });
  });

  it.each([['apply', '-y'], ['plan']])('changes nothing, and no host is contacted: %s', async (...command) => {
    const before = starts();
    const file = fleet(group('core', 'maxPods: 77') + group('edge', 'maxPod: 60'));
    const { code, stdout, stderr } = await run(command, file, NO_CONTACT);
    expect(code).toBe(2);
    expect(stdout).toBe('');
    expect(stderr).toContain(`${file}:10:7 kubeletConfiguration.maxPod: unknown field. Did you mean maxPods? [CONFIG_UNKNOWN_FIELD]\n`);
    expect(config(2)).toContain('maxPods: 70\n');
    expect(starts()).toEqual(before);
  });

  it('is found by the version of the file: a field that the kubelet does not know yet', async () => {
    const file = fleet(
      group('core', 'maxPods: 77') + group('edge', 'crashLoopBackOff: {maxContainerRestartPeriod: 10s}'),
      'kubernetesVersion: "1.30"\n',
    );
    const { code, stderr } = await run(['apply', '-y'], file, NO_CONTACT);
    expect(code).toBe(2);
    expect(stderr).toMatch(/fleet\.yaml:11:7 kubeletConfiguration\.crashLoopBackOff: unknown to a 1\.30 kubelet/);
  });

  describe('that only the hosts show, because the file names no version', () => {
    // A gate of older kubelets; the hosts run 1.36.
    const edge = 'featureGates: {DynamicKubeletConfig: true}';

    it.each([['apply', '-y'], ['plan']])('changes nothing: %s', async (...command) => {
      const before = starts();
      const { code, stderr } = await run(command, fleet(group('core', 'maxPods: 78') + group('edge', edge)));
      expect(code).toBe(2);
      expect(stderr).toMatch(/node3: .*featureGates.*DynamicKubeletConfig.*fleet\.yaml/);
      expect(config(2)).toContain('maxPods: 70\n');
      expect(starts()).toEqual(before);
    });

    it('refuses only the affected hosts with --no-inspect-first', async () => {
      const file = fleet(group('core', 'maxPods: 79') + group('edge', edge));
      const { code } = await run(['apply', '-y', '--no-inspect-first'], file);
      expect(code).toBe(4);
      expect(config(2)).toContain('maxPods: 79\n');
    });
  });
});
