import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../../../src/base/json.ts';
import { loadCatalogue } from '../../../../src/kubelet/catalogue/load-catalogue.ts';
import { classifyChanges, worstLiveChange } from '../../../../src/kubelet/validate/classify-changes.ts';

const catalogue = await loadCatalogue();

function changes(before: JsonObject, after: JsonObject, minor = 36): string[] {
  return classifyChanges(before, after, { minor, catalogue }).map(
    ({ path, before: was, after: is, class: name }) => `${path} ${JSON.stringify(was)} -> ${JSON.stringify(is)} ${name}`,
  );
}

describe('classifyChanges', () => {
  it.each<[string, JsonObject, JsonObject, string[]]>([
    ['an explicit default is not a change', {}, { maxPods: 110, syncFrequency: '60s' }, []],
    ['an explicit zero is the default', { port: 0 }, { port: 10250 }, []],
    ['durations are compared by value', { syncFrequency: '90s' }, { syncFrequency: '1m30s' }, []],
    ['quantities are compared by value', { kubeReserved: { memory: '1Gi' } }, { kubeReserved: { memory: '1024Mi' } }, []],
    [
      'percentages are not quantities',
      { evictionHard: { a: '5%' } },
      { evictionHard: { a: '6%' } },
      ['evictionHard[a] "5%" -> "6%" new-pods-only'],
    ],
    ['the class of the catalogue', {}, { cgroupDriver: 'systemd' }, ['cgroupDriver "cgroupfs" -> "systemd" unsafe']],
    ['a limit that is raised', { maxPods: 50 }, {}, ['maxPods 50 -> 110 safe']],
    ['a limit that is lowered', {}, { maxPods: 50 }, ['maxPods 110 -> 50 new-pods-only']],
    ['no limit is the highest', { podPidsLimit: 100 }, {}, ['podPidsLimit 100 -> -1 safe']],
    ['a new limit', {}, { podsPerCore: 5 }, ['podsPerCore undefined -> 5 new-pods-only']],
    ['lists are one value', { clusterDNS: ['10.0.0.10'] }, { clusterDNS: [] }, ['clusterDNS ["10.0.0.10"] -> [] new-pods-only']],
    ['an empty list equals no list', { clusterDNS: [] }, {}, []],
    [
      'an empty list differs from a non-empty default',
      { enforceNodeAllocatable: [] },
      {},
      ['enforceNodeAllocatable [] -> ["pods"] unsafe'],
    ],
    [
      'members of maps by name',
      { featureGates: { A: true } },
      { featureGates: { A: false, B: true } },
      ['featureGates[A] true -> false unsafe', 'featureGates[B] undefined -> true unsafe'],
    ],
    ['a port without authentication', {}, { readOnlyPort: 10255 }, ['readOnlyPort undefined -> 10255 unsafe']],
    [
      'health checks at another address or port',
      {},
      { healthzBindAddress: '0.0.0.0', healthzPort: 0 },
      ['healthzBindAddress "127.0.0.1" -> "0.0.0.0" unsafe', 'healthzPort 10248 -> 0 unsafe'],
    ],
    [
      'kernel settings for pods',
      {},
      { allowedUnsafeSysctls: ['kernel.msg*'] },
      ['allowedUnsafeSysctls undefined -> ["kernel.msg*"] unsafe'],
    ],
    [
      'images pulled with credentials of other pods',
      {},
      { imagePullCredentialsVerificationPolicy: 'NeverVerify' },
      ['imagePullCredentialsVerificationPolicy "NeverVerifyPreloadedImages" -> "NeverVerify" unsafe'],
    ],
    ['nested fields', {}, { authentication: { anonymous: { enabled: true } } }, ['authentication.anonymous.enabled false -> true unsafe']],
    ['unknown fields are ignored', {}, { nonsense: 1 }, []],
  ])('%s', (_, before, after, expected) => {
    expect(changes(before, after)).toEqual(expected);
  });

  it('depends on the minor', () => {
    expect(changes({ kubeAPIQPS: 5 }, {}, 26)).toEqual([]);
    expect(changes({ kubeAPIQPS: 5 }, {}, 27)).toEqual(['kubeAPIQPS 5 -> 50 safe']);
  });

  it('names the highest impact', () => {
    const found = classifyChanges({}, { maxPods: 200, cpuManagerPolicy: 'static', kubeAPIQPS: 7 }, { minor: 36, catalogue });
    expect(worstLiveChange(found)).toBe('drain');
    expect(worstLiveChange([])).toBeNull();
  });
});
