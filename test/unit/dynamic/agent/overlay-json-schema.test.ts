import { describe, expect, it } from 'vitest';
import { overlayJsonSchema } from '../../../../src/dynamic/agent/overlay.ts';
import { NEWEST_MINOR } from '../../../../src/kubelet/catalogue/catalogue.ts';
import { loadCatalogue } from '../../../../src/kubelet/catalogue/load-catalogue.ts';
import { NO_VALIDATOR, schemaErrors } from '../../../support/json-schema-validator.ts';

const HEADER = { apiVersion: 'kubeletadm.dev/v1alpha1', kind: 'KubeletConfigurationOverlay' };
const catalogue = await loadCatalogue();

describe.skipIf(NO_VALIDATOR)('overlayJsonSchema', () => {
  const errors = schemaErrors(overlayJsonSchema(catalogue, NEWEST_MINOR));

  it.each<[string, object, boolean]>([
    ['fields', { maxPods: 60, evictionHard: { 'memory.available': '100Mi' } }, true],
    ['null, which removes a field', { maxPods: null, syncFrequency: null, memorySwap: { swapBehavior: null } }, true],
    ['an unknown field', { maxPod: 60 }, false],
    ['a wrong type', { maxPods: 'sixty' }, false],
    ['the kind of a complete configuration', { apiVersion: 'kubelet.config.k8s.io/v1beta1', kind: 'KubeletConfiguration' }, false],
  ])('decides on %s', (_, fields, isValid) => {
    expect(errors({ ...HEADER, ...fields }).length === 0).toBe(isValid);
  });

  it('has the fields of each kubelet version', () => {
    const old = schemaErrors(overlayJsonSchema(catalogue, 25));
    expect(old({ ...HEADER, memorySwap: {} })).toEqual([]);
    expect(old({ ...HEADER, podLogsDir: '/var/log/pods' })).not.toEqual([]);
  });
});
