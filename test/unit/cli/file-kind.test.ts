import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { runCommand } from '../../support/run-cli.ts';

const directory = mkdtempSync(join(tmpdir(), 'ka-kinds-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

/** Runs a command with a file, which is `FILE` in the result. */
async function runWith(command: string, text: string): Promise<string> {
  const file = join(directory, 'file');
  writeFileSync(file, text);
  const { code, stderr } = await runCommand([...command.split(' '), file], { env: { HOME: directory } });
  expect(code).toBe(2);
  return stderr.replaceAll(file, 'FILE');
}

const documentOf = (apiVersion: string, kind: string): string => `apiVersion: ${apiVersion}\nkind: ${kind}\n`;

const FLEET =
  'The file is a fleet file: validate it with kubeletadm fleet validate -f FILE, apply it with kubeletadm apply -f FILE. [CONFIG_UNKNOWN_KIND]\n';
const KUBEADM = 'Validate the file with kubeletadm config validate FILE, and pass it to init, join, reset or upgrade with --config FILE. [';
const K0SCTL = 'The file is for k0sctl: import its hosts with kubeletadm fleet init --from-k0sctl FILE. [';

describe('a document of another command', () => {
  it.each<[string, string, string, string]>([
    ['a fleet file', 'config validate', documentOf('kubeletadm.dev/v1alpha1', 'Fleet'), FLEET],
    ['a fleet file as JSON', 'init --config', '{"apiVersion": "kubeletadm.dev/v1alpha1", "kind": "Fleet"}', FLEET],
    [
      'a fleet file behind another document',
      'config validate',
      `${documentOf('kubeadm.k8s.io/v1beta4', 'ResetConfiguration')}---\n${documentOf('kubeletadm.dev/v1alpha1', 'Fleet')}`,
      FLEET,
    ],
    [
      'a saved plan',
      'plan -f',
      '{"apiVersion": "kubeletadm.dev/v1alpha1", "kind": "FleetPlan"}',
      'The file is a saved plan: show it with kubeletadm plan show FILE, apply it with kubeletadm apply FILE. [CONFIG_UNKNOWN_KIND]\n',
    ],
    ['a configuration of kubeadm', 'fleet validate -f', documentOf('kubeadm.k8s.io/v1beta4', 'InitConfiguration'), KUBEADM],
    ['a KubeletConfiguration', 'apply', documentOf('kubelet.config.k8s.io/v1beta1', 'KubeletConfiguration'), KUBEADM],
    ['a file of k0sctl', 'config validate', documentOf('k0sctl.k0sproject.io/v1beta1', 'Cluster'), K0SCTL],
    ['a file of k0sctl as a fleet file', 'fleet validate -f', documentOf('k0sctl.k0sproject.io/v1beta1', 'Cluster'), K0SCTL],
    [
      'a kubeconfig',
      'config validate',
      documentOf('v1', 'Config'),
      'The file is a kubeconfig: pass it with --kubeconfig FILE. [CONFIG_UNKNOWN_KIND]\n',
    ],
    [
      'a KubeletConfiguration as a file of k0sctl',
      'fleet init --from-k0sctl',
      documentOf('kubelet.config.k8s.io/v1beta1', 'KubeletConfiguration'),
      KUBEADM,
    ],
  ])('%s gets the hint of its command: %s', async (_, command, text, hint) => {
    expect(await runWith(command, text)).toContain(hint);
  });

  it('keeps the hint of its reader', async () => {
    expect(await runWith('apply', '{"apiVersion": "kubeletadm.dev/v1alpha1", "kind": "FleetPlan"}')).toContain(
      'Create a plan with kubeletadm plan --out FILE. [PLAN_INVALID]',
    );
    expect(await runWith('apply', documentOf('kubeletadm.dev/v1alpha1', 'Fleet'))).toContain(
      'Apply the fleet file with kubeletadm apply -f FILE. [',
    );
    expect(await runWith('fleet init --from-k0sctl', documentOf('k0sctl.k0sproject.io/v1beta1', 'Cluster'))).toContain(
      'Pass a k0sctl.yaml with spec.hosts. [FLEET_IMPORT_INVALID]',
    );
  });
});
