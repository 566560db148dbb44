import { describe, expect, it } from 'vitest';
import { formatProblem } from '../../../src/base/errors.ts';
import { validateFleet, validateValues } from '../../../src/fleet/file/validate.ts';
import { loadCatalogue } from '../../../src/kubelet/catalogue/load-catalogue.ts';
import { resolved } from './support.ts';

async function validate(body: string, minor = 36) {
  const { problems, configurations } = validateFleet(resolved(body), { minor, catalogue: await loadCatalogue() });
  return { configurations, lines: problems.map(formatProblem) };
}

describe('validateFleet', () => {
  it('validates each distinct configuration once', async () => {
    const body = `baseline: {variables: {pods: 100}, kubeletConfiguration: {maxPods: "{{ pods }}"}}
groups: [{name: a, kubeletConfiguration: {podsPerCore: 1}}]
hosts: [{name: "n[1:500]"}, {name: "m[1:500]", groups: [a]}, {name: "o[1:500]", variables: {pods: 50}}]
`;
    expect(await validate(body)).toEqual({ configurations: 3, lines: [] });
  });

  it('names position, field and hosts', async () => {
    const body = `baseline:
  kubeletConfiguration:
    maxPod: 110
groups:
  - name: a
    kubeletConfiguration:
      evictionHard: {memory.available: 110%}
      imageGCHighThresholdPercent: 50
hosts: [{name: n1}, {name: "m[1:3]", groups: [a]}]
`;
    expect((await validate(body)).lines).toEqual([
      'fleet.yaml:5:5 kubeletConfiguration.maxPod: unknown field. Did you mean maxPods? [CONFIG_UNKNOWN_FIELD]',
      expect.stringMatching(/^m1 \(and 2 more\): fleet\.yaml:9:\d+ kubeletConfiguration\.evictionHard\[memory\.available\]: .*110%/),
      expect.stringMatching(/^m1 \(and 2 more\): fleet\.yaml:10:7 kubeletConfiguration\.imageGCLowThresholdPercent: /),
    ]);
  });

  it('reports a conflict of values from different layers', async () => {
    const body = `baseline: {kubeletConfiguration: {imageGCLowThresholdPercent: 60}}
groups: [{name: a, kubeletConfiguration: {imageGCHighThresholdPercent: 50}}]
hosts: [{name: n1}, {name: n2, groups: [a]}]
`;
    const { lines } = await validate(body);
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatch(/^n2: fleet\.yaml:[34]:\d+ kubeletConfiguration\.imageGC/);
    expect((await validate(body.replace('imageGCHighThresholdPercent: 50', 'imageGCHighThresholdPercent: 70'))).lines).toEqual([]);
  });

  it('accepts a layer that corrects an earlier one', async () => {
    const body = (pods: string) => `baseline: {kubeletConfiguration: {imageGCHighThresholdPercent: 0}}
groups: [{name: a, kubeletConfiguration: ${pods}}]
hosts: [{name: n2, groups: [a]}]
`;
    expect((await validate(body('{}'))).lines).not.toEqual([]);
    expect((await validate(body('{imageGCHighThresholdPercent: 85}'))).lines).toEqual([]);
  });

  it('validates by the rules of the minor version, flags included', async () => {
    const body =
      'hosts: [{name: n1, kubeletExtraArgs: [{name: pod-infra-container-image, value: x}], kubeletConfiguration: {failSwapOn: false, crashLoopBackOff: {maxContainerRestartPeriod: 10s}}}]\n';
    expect((await validate(body, 30)).lines).toEqual([
      expect.stringContaining(
        'fleet.yaml:3:127 kubeletConfiguration.crashLoopBackOff: unknown to a 1.30 kubelet: the field was added in 1.32',
      ),
    ]);
    expect((await validate(body, 36)).lines.filter((line) => line.includes('[KUBELET_FLAG_UNKNOWN]'))).toEqual([
      expect.stringContaining(
        'fleet.yaml:3:20 kubeletExtraArgs pod-infra-container-image: a 1.36 kubelet has no flag --pod-infra-container-image: the flag was removed in',
      ),
    ]);
  });

  it('reports a value with which the kubelet exits', async () => {
    const body = 'hosts: [{name: n1, kubeletExtraArgs: [{name: max-pods, value: lots}]}]\n';
    expect((await validate(body, 36)).lines.filter((line) => line.includes('[FLAG_INVALID_VALUE]'))).toEqual([
      expect.stringContaining('kubeletExtraArgs max-pods: --max-pods of a 1.36 kubelet expects an integer, not "lots"'),
    ]);
  });
});

describe('validateValues', () => {
  const verdictOf = async (hosts: string, version?: string) => {
    const fleet = resolved(`${version === undefined ? '' : `kubernetesVersion: "${version}"\n`}hosts: ${hosts}\n`);
    return validateValues(fleet, await loadCatalogue()).map(({ path }) => path);
  };
  const one = (fields: string): string => `[{name: n1, kubeletConfiguration: {${fields}}}]`;

  it('validates each host by the version of its packages, otherwise by kubernetesVersion', async () => {
    const field = 'kubeletConfiguration: {imageMaximumGCAge: 24h}';
    const hosts = `[{name: n1, ${field}}, {name: n2, ${field}, install: packages, packages: {version: "1.28"}}]`;
    expect(await verdictOf(hosts, '1.36')).toEqual(['kubeletConfiguration.imageMaximumGCAge']);
  });

  it.each([
    ['a value that no version accepts', 'maxPods: -1', undefined, ['kubeletConfiguration.maxPods']],
    ['an unknown field', 'maxPod: 1', undefined, ['kubeletConfiguration.maxPod']],
    ['a value that all versions accept', 'maxPods: 50', undefined, []],
    ['a value with a warning', 'maxPods: 1000', undefined, []],
    ['a field of newer versions', 'memorySwap: {swapBehavior: LimitedSwap}', undefined, []],
    ['a gate of versions in between', 'featureGates: {ContextualLogging: true}', undefined, []],
    ['a field of all versions within the version skew', 'memorySwap: {swapBehavior: LimitedSwap}', '1.36', []],
    ['a field of the newest of them', 'podLogsDir: /var/log/pods', '1.30', []],
  ])('%s', async (_, fields, version, errors) => {
    expect(await verdictOf(one(fields), version)).toEqual(errors);
  });
});
