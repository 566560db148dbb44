import { describe, expect, it } from 'vitest';
import { runCommand } from '../support/run-cli.ts';

const validate = (stdin: string) => runCommand(['config', 'validate', '--kubernetes-version', '1.36', '-'], { stdin });

const CONFIG_MAP = `apiVersion: v1
data:
  kubelet: |
    apiVersion: kubelet.config.k8s.io/v1beta1
    kind: KubeletConfiguration
    maxPods: -1
    maxPod: 5
kind: ConfigMap
metadata:
  name: kubelet-config
  namespace: kube-system
`;

describe('config validate', () => {
  it('validates the configuration in a ConfigMap at its places in the file', async () => {
    const { code, stderr } = await validate(CONFIG_MAP);
    expect([code, stderr]).toEqual([2, expect.stringMatching(/^standard input:6:5 maxPods: .*\nstandard input:7:5 maxPod: unknown/)]);
    expect(await validate(CONFIG_MAP.replace('-1', '60').replace('    maxPod: 5\n', ''))).toMatchObject({ code: 0, stdout: 'ok\n' });
  });

  it('keeps the line numbers in messages', async () => {
    const { stderr } = await validate(CONFIG_MAP.replace('maxPod: 5', 'maxPods: 5'));
    expect(stderr).toContain('standard input:7:5 maxPods: duplicate field, first on line 6');
  });

  it('reports problems of another notation at its beginning', async () => {
    const inner = { apiVersion: 'kubelet.config.k8s.io/v1beta1', kind: 'KubeletConfiguration', maxPods: -1 };
    const text = JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', data: { kubelet: JSON.stringify(inner) } }, null, 2);
    const { code, stderr } = await validate(text);
    expect([code, stderr]).toEqual([2, expect.stringMatching(/^standard input:5:16 maxPods: /)]);
  });

  it('validates the configuration of kubeadm in kubeadm-config', async () => {
    const text =
      'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: kubeadm-config}\ndata:\n  ClusterConfiguration: |\n    apiVersion: kubeadm.k8s.io/v1beta4\n    kind: ClusterConfiguration\n    imageRepositry: x\n';
    const { code, stderr } = await validate(text);
    expect([code, stderr]).toEqual([2, expect.stringMatching(/^standard input:8:5 imageRepositry: unknown field/)]);
  });

  it.each([
    ['ConfigMap', 'apiVersion: v1\nkind: ConfigMap\ndata: {a: b}\n', 'data.kubelet'],
    ['KubeletConfig', 'apiVersion: machineconfiguration.openshift.io/v1\nkind: KubeletConfig\nspec: {logLevel: 3}\n', 'spec.kubeletConfig'],
  ])('refuses a %s without a configuration', async (kind, text, path) => {
    const { code, stderr } = await validate(text);
    expect([code, stderr]).toEqual([
      2,
      `standard input:1:1: the ${kind} contains no configuration. Check that this is the right object: the configuration is in ${path}. [CONFIG_EMPTY]\n`,
    ]);
  });

  it('validates spec.kubeletConfig of a KubeletConfig of OpenShift', async () => {
    const text = `apiVersion: machineconfiguration.openshift.io/v1
kind: KubeletConfig
metadata: {name: custom}
spec:
  machineConfigPoolSelector: {matchLabels: {custom-kubelet: x}}
  kubeletConfig:
    maxPods: "many"
    maxPod: 5
`;
    const { code, stderr } = await validate(text);
    expect([code, stderr]).toEqual([2, expect.stringMatching(/^standard input:7:14 maxPods: .*\nstandard input:8:5 maxPod: unknown/)]);
    const valid = text.replace('"many"', '60').replace('    maxPod: 5\n', '');
    expect(await validate(valid)).toMatchObject({ code: 0 });
  });
});
