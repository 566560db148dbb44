import { describe, expect, it } from 'vitest';
import { validatePayload } from '../../../src/dynamic/agent/validate-payload.ts';
import { loadCatalogue } from '../../../src/kubelet/catalogue/load-catalogue.ts';

const OVERLAY = 'apiVersion: kubeletadm.dev/v1alpha1\nkind: KubeletConfigurationOverlay\n';
const catalogue = await loadCatalogue();
const validate = (text: string, native = false) => validatePayload(text, 'overlay.yaml', { minors: [36], catalogue, native });

describe('the verdict on an overlay', () => {
  it('accepts single fields, and null for a removed field', async () => {
    expect(await validate(`${OVERLAY}maxPods: 60\nevictionHard: null\n`)).toEqual([]);
  });

  it('refuses unknown fields and wrong types, with their position', async () => {
    expect(await validate(`${OVERLAY}maxPod: 60\nimageGCHighThresholdPercent: many\n`)).toMatchObject([
      { code: 'CONFIG_UNKNOWN_FIELD', position: { line: 3, column: 1 }, message: expect.stringContaining('unknown field') },
      { path: 'imageGCHighThresholdPercent', position: { line: 4 } },
    ]);
  });

  it('only warns about rules that depend on the fields of the node', async () => {
    const found = await validate(`${OVERLAY}imageGCHighThresholdPercent: 70\n`);
    expect(found).toMatchObject([
      {
        code: 'KUBELET_IMAGE_GC_ORDER',
        severity: 'warning',
        message: expect.stringContaining('unless the other fields of the node satisfy this rule'),
      },
    ]);
  });

  it('refuses an overlay for kubelets that read ConfigMaps themselves', async () => {
    expect(await validate(`${OVERLAY}maxPods: 60\n`, true)).toMatchObject([{ code: 'CONFIG_WRONG_KIND' }]);
  });

  it('refuses a malformed overlay', async () => {
    expect(await validate('apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfigurationOverlay\nmaxPods: 1\n')).not.toEqual([]);
    expect(await validate('apiVersion: kubeletadm.dev/v1alpha1\nkind: Overlay\n')).toMatchObject([{ code: 'CONFIG_WRONG_KIND' }]);
    const found = await validate('maxPods: 80\n---\nmaxPods: 90\n');
    expect(found).toMatchObject([{ message: 'expected one document, found 2', position: { line: 3 } }]);
  });
});

describe('the verdict on a payload that disables dynamic configuration', () => {
  const text = 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nfeatureGates: {DynamicKubeletConfig: false}\n';
  const ownFindings = async (minor: number, native: boolean) =>
    (await validatePayload(text, 'kubelet.yaml', { minors: [minor], catalogue, native })).filter(({ code }) => code.startsWith('DYNAMIC_'));

  it('refuses the payload if the kubelet reads it itself and no flag overrides it', async () => {
    expect(await ownFindings(21, true)).toMatchObject([{ code: 'DYNAMIC_TURNS_ITSELF_OFF', path: 'featureGates[DynamicKubeletConfig]' }]);
    expect(await ownFindings(22, true)).toEqual([]);
    expect(await ownFindings(21, false)).toEqual([]);
  });
});

describe('the verdict for kubelets of several minors', () => {
  const text = 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\ncpuCFSQuotaPeriod: 5ms\n';

  it('uses the rules of each minor version, and names versions without complete rules', async () => {
    const found = await validatePayload(text, 'kubelet.yaml', { minors: [17, 21, 38], catalogue, native: false });
    expect(found.map(({ code, message }) => `${code} ${message}`)).toEqual([
      expect.stringMatching(/^KUBELET_RULES_OF_OTHER_MINOR Kubernetes 1\.17 is older .* startup checks by the rules of 1\.20$/),
      expect.stringMatching(/^KUBELET_NEEDS_GATE .*\(for kubelet 1\.21\)$/),
      expect.stringMatching(
        /^KUBELET_RULES_OF_OTHER_MINOR kubeletadm does not know Kubernetes 1\.38: .* rules of 1\.37, the newest known version$/,
      ),
    ]);
  });

  it('names them for an overlay too, without the note on values of the node', async () => {
    const found = await validatePayload(`${OVERLAY}maxPods: 60\n`, 'overlay.yaml', { minors: [17], catalogue, native: false });
    expect(found).toMatchObject([
      { code: 'KUBELET_RULES_OF_OTHER_MINOR', severity: 'warning', message: expect.stringMatching(/of 1\.20$/) },
    ]);
  });
});
