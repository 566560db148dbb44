import path from 'node:path';
import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../../../src/base/json.ts';
import { loadCatalogue } from '../../../../src/kubelet/catalogue/load-catalogue.ts';
import { diffConfigs } from '../../../../src/kubelet/diff/diff-configs.ts';
import { diffDocument, renderDiff } from '../../../../src/kubelet/effective/render.ts';

const catalogue = await loadCatalogue();

function side(config: JsonObject, minor = 36, name = 'a.yaml') {
  return { name, minor, config };
}

function changes(before: JsonObject, after: JsonObject, minors: readonly [number, number] = [36, 36]) {
  const { differences } = diffConfigs(side(before, minors[0]), side(after, minors[1]), catalogue);
  return differences.map((one) => [one.path, one.before.value, one.after.value, one.class]);
}

it('shows no HTTP headers and no password of a URL, in text and documents', () => {
  const config = (secret: string) => ({
    staticPodURL: `https://u:${secret}@files.example`,
    staticPodURLHeader: { Authorization: [secret] },
  });
  const sides = [side(config('hunter2'), 36, 'a'), side(config('hunter3'), 36, 'b')] as const;
  const diff = diffConfigs(...sides, catalogue);
  const shown = [renderDiff(diff, ...sides), JSON.stringify(diffDocument(diff, ...sides))];
  for (const text of shown) {
    expect(text).toContain('staticPodURLHeader[Authorization]');
    expect(text).toContain('[secret]');
    expect(text).not.toContain('hunter');
  }
});

describe('diffConfigs', () => {
  it.each<[string, JsonObject, JsonObject]>([
    ['an explicit default', {}, { maxPods: 110, healthzPort: 10248 }],
    ['durations', { syncFrequency: '90s' }, { syncFrequency: '1m30s' }],
    ['a duration in nanoseconds', { logging: { flushFrequency: 5000000000 } }, { logging: { flushFrequency: '5s' } }],
    ['quantities', { kubeReserved: { memory: '1Gi', cpu: '1' } }, { kubeReserved: { cpu: '1000m', memory: '1024Mi' } }],
    ['a zero that means the default', { maxPods: 0, syncFrequency: '0s', port: 0 }, {}],
    [
      'hard eviction thresholds that the kubelet adds',
      {},
      {
        mergeDefaultEvictionSettings: false,
        evictionHard: {
          'memory.available': '100Mi',
          'nodefs.available': '10%',
          'imagefs.available': '15%',
          'nodefs.inodesFree': '5%',
          'imagefs.inodesFree': '5%',
        },
      },
    ],
    ['gates set to their default', { featureGates: { NodeSwap: true, InPlacePodVerticalScaling: true } }, {}],
    ['the order of members', { featureGates: { A: true, B: false } }, { featureGates: { B: false, A: true } }],
  ])('finds no difference in %s', (_, before, after) => {
    expect(changes(before, after)).toEqual([]);
  });

  it('uses the defaults of each side’s own kubelet', () => {
    expect(changes({}, {}, [26, 27]).map(([name, before, after]) => [name, before, after])).toEqual([
      ['eventBurst', 10, 100],
      ['eventRecordQPS', 5, 50],
      ['kubeAPIBurst', 10, 100],
      ['kubeAPIQPS', 5, 50],
      ['memoryThrottlingFactor', 0.8, 0.9],
    ]);
  });

  it('uses the default of unset gates in each kubelet', () => {
    expect(changes({ featureGates: { NodeSwap: false } }, {}, [29, 30])).toContainEqual(['featureGates[NodeSwap]', false, true, 'unsafe']);
    expect(changes({ featureGates: { AllAlpha: true } }, {}).map(([name, before, after]) => [name, before, after])).toEqual([
      ['featureGates[AllAlpha]', true, false],
    ]);
  });

  it('marks defaults, the impact of each change, and fields specific to a host', () => {
    const { differences, worst } = diffConfigs(
      side({ maxPods: 50 }),
      side({ resolvConf: '/run/systemd/resolve/resolv.conf', clusterDomain: 'a.b' }),
      catalogue,
    );
    expect(worst).toBe('new-pods-only');
    expect(
      differences.map(({ path: name, before, after, nodeSpecific }) => [name, before.isDefault, after.isDefault, nodeSpecific]),
    ).toEqual([
      ['clusterDomain', false, false, false],
      ['maxPods', false, true, false],
      ['resolvConf', true, false, true],
    ]);
  });
});

describe('a comparison', () => {
  const before = side({ maxPods: 50, evictionHard: { 'memory.available': '1Gi' }, clusterDNS: ['10.96.0.10'] }, 36, 'old.yaml');
  const after = side({ cpuManagerPolicy: 'static', resolvConf: '/x' }, 36, 'host/node1');
  const diff = diffConfigs(before, after, catalogue);

  it('is printed as a table', async () => {
    await expect(renderDiff(diff, before, after)).toMatchFileSnapshot(path.join(import.meta.dirname, 'golden', 'table.txt'));
  });

  it('is printed as JSON and YAML', async () => {
    const document = `${JSON.stringify(diffDocument(diff, before, after), null, 2)}\n`;
    await expect(document).toMatchFileSnapshot(path.join(import.meta.dirname, 'golden', 'document.json'));
  });

  it('reports that no field differs', () => {
    expect(renderDiff(diffConfigs(before, before, catalogue), before, before)).toBe(
      'old.yaml (kubelet 1.36) and old.yaml (kubelet 1.36): no effective difference\n',
    );
  });
});
