import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../../../src/base/json.ts';
import { defaultEvictionHard } from '../../../../src/kubelet/catalogue/conditional-defaults.ts';
import { loadCatalogue } from '../../../../src/kubelet/catalogue/load-catalogue.ts';
import { defaultKubeletConfiguration, fillKubeletDefaults } from '../../../../src/kubelet/defaults/effective-configuration.ts';

const catalogue = await loadCatalogue();

function filled(config: JsonObject, minor = 36): JsonObject {
  return fillKubeletDefaults(config, { minor, catalogue });
}

describe('fillKubeletDefaults', () => {
  it.each<[string, JsonObject, number, JsonObject]>([
    [
      'a plain zero is replaced',
      { port: 0, maxPods: 0, syncFrequency: '0s', hairpinMode: '' },
      36,
      {
        port: 10250,
        maxPods: 110,
        syncFrequency: '1m0s',
        hairpinMode: 'promiscuous-bridge',
      },
    ],
    [
      'a zero behind a pointer is kept',
      { healthzPort: 0, eventRecordQPS: 0, failSwapOn: false, cpuCFSQuotaPeriod: '0s' },
      36,
      {
        healthzPort: 0,
        eventRecordQPS: 0,
        failSwapOn: false,
        cpuCFSQuotaPeriod: '0s',
      },
    ],
    ['an empty list is kept', { enforceNodeAllocatable: [] }, 36, { enforceNodeAllocatable: [] }],
    ['an empty map is kept', { evictionHard: {} }, 25, { evictionHard: {} }],
    ['resolvConf: no pointer to 1.22', { resolvConf: '' }, 22, { resolvConf: '/etc/resolv.conf' }],
    ['resolvConf: a pointer from 1.23', { resolvConf: '' }, 23, { resolvConf: '' }],
    ['a negative limit of processes means no limit', { podPidsLimit: -7 }, 36, { podPidsLimit: -1 }],
    ['a limit of processes beyond 53 bits', { podPidsLimit: '9223372036854775807' }, 36, { podPidsLimit: '9223372036854775807' }],
    [
      'the report frequency follows the update frequency',
      { nodeStatusUpdateFrequency: '30s' },
      36,
      {
        nodeStatusUpdateFrequency: '30s',
        nodeStatusReportFrequency: '30s',
      },
    ],
    ['pulls in parallel are not serial', { maxParallelImagePulls: 2 }, 27, { serializeImagePulls: false }],
    ['one pull at a time is serial', { maxParallelImagePulls: 1 }, 27, { serializeImagePulls: true }],
    [
      'a default of an enabled gate',
      {},
      35,
      {
        crashLoopBackOff: { maxContainerRestartPeriod: '5m0s' },
        imagePullCredentialsVerificationPolicy: 'NeverVerifyPreloadedImages',
      },
    ],
    [
      'a gate of the file is honoured',
      { featureGates: { KubeletCrashLoopBackOffMax: true } },
      32,
      {
        crashLoopBackOff: { maxContainerRestartPeriod: '5m0s' },
      },
    ],
    [
      'AllAlpha is honoured',
      { featureGates: { AllAlpha: true } },
      33,
      {
        imagePullCredentialsVerificationPolicy: 'NeverVerifyPreloadedImages',
      },
    ],
    ['flushFrequency was a number', {}, 27, { logging: { format: 'text', flushFrequency: 5_000_000_000 } }],
  ])('%s', (_, config, minor, expected) => {
    expect(filled(config, minor)).toMatchObject(expected);
  });

  it('omits a default of a disabled gate', () => {
    expect(filled({}, 34)).not.toHaveProperty('crashLoopBackOff');
    expect(filled({}, 34)).not.toHaveProperty('imagePullCredentialsVerificationPolicy');
  });

  it('does not change its input', () => {
    const config = Object.freeze({ authentication: Object.freeze({ x509: Object.freeze({}) }) });
    expect(filled(config)).toMatchObject({ authentication: { anonymous: { enabled: false } } });
  });

  it('is idempotent', () => {
    for (let minor = 20; minor <= 36; minor++) {
      const defaults = defaultKubeletConfiguration(minor, catalogue);
      expect(filled(defaults, minor)).toEqual(defaults);
    }
  });
});

describe('defaultEvictionHard', () => {
  it('equals the former default of the field', () => {
    expect(defaultKubeletConfiguration(25, catalogue).evictionHard).toEqual(defaultEvictionHard(25));
    expect(defaultKubeletConfiguration(26, catalogue).evictionHard).toBeUndefined();
    expect(defaultEvictionHard(30)).toHaveProperty(['imagefs.inodesFree'], '5%');
  });
});
