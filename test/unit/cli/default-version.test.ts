import { describe, expect, it } from 'vitest';
import { NEWEST_RELEASE } from '../../../src/kubeadm/workflows/control-plane/resolve-cluster-configuration.ts';
import { DEFAULT_MINOR, formatMinor, parseMinor } from '../../../src/kubelet/catalogue/catalogue.ts';
import { runCommand } from '../../support/run-cli.ts';

// A gate that 1.36 has and 1.37 removed.
const GATE = 'AnyVolumeDataSource';
const KUBELET = `apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nfeatureGates: {${GATE}: true}\n`;
const INIT = `apiVersion: kubeadm.k8s.io/v1beta4\nkind: InitConfiguration\n---\n${KUBELET}`;

describe('the default Kubernetes version', () => {
  it('is the release of which the program generates the manifests', () => {
    expect(parseMinor(NEWEST_RELEASE)).toBe(DEFAULT_MINOR);
  });

  it.each([
    ['config validate of kubeadm documents', ['config', 'validate', '-'], INIT],
    ['config validate of a KubeletConfiguration', ['config', 'validate', '-'], KUBELET],
    ['config migrate', ['config', 'migrate', '--old-config', '-'], INIT],
  ])('applies to %s', async (_, args, stdin) => {
    const { code, stderr } = await runCommand(args, { stdin });
    expect([code, stderr]).toEqual([0, expect.not.stringContaining('does not start with this gate')]);
  });

  it.each([
    ['config explain', ['config', 'explain', GATE]],
    ['config defaults', ['config', 'defaults']],
    ['config schema', ['config', 'schema', 'KubeletConfiguration']],
  ])('applies to %s', async (_, args) => {
    const [byDefault, explicit] = [await runCommand(args), await runCommand([...args, '--kubernetes-version', formatMinor(DEFAULT_MINOR)])];
    expect([byDefault.code, byDefault.stdout]).toEqual([0, explicit.stdout]);
  });
});
