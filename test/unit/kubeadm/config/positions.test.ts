import { describe, expect, it } from 'vitest';
import { documentOf, load } from './support.ts';

describe('positions', () => {
  const text = `${documentOf('init', 'nodeRegistration:\n  name: cp-1\n  taints:\n  - key: a\n    effect: NoSchedule\nskipPhases: [addon]\npatches:\n')}---
${documentOf('cluster', 'featureGates:\n  RootlessControlPlane: true\n')}---
${documentOf('join3', 'nodeRegistration:\n  kubeletExtraArgs:\n    zoo: z\n    a.b: x\ndiscovery:\n  timeout: 1m\n')}`;
  const { positions } = load(text);

  it.each([
    ['InitConfiguration', 1, 1],
    ['InitConfiguration.nodeRegistration', 3, 1],
    ['InitConfiguration.nodeRegistration.name', 4, 9],
    ['InitConfiguration.nodeRegistration.taints', 5, 3],
    ['InitConfiguration.nodeRegistration.taints[0]', 6, 5],
    ['InitConfiguration.nodeRegistration.taints[0].effect', 7, 13],
    ['InitConfiguration.skipPhases[0]', 8, 14],
    ['InitConfiguration.patches', 9, 1],
    ['ClusterConfiguration.featureGates.RootlessControlPlane', 14, 25],
    ['JoinConfiguration.nodeRegistration.kubeletExtraArgs[0].value', 21, 10],
    ['JoinConfiguration.nodeRegistration.kubeletExtraArgs[1].name', 20, 10],
    ['JoinConfiguration.timeouts.discovery', 23, 12],
  ])('%s', (path, line, column) => {
    expect(positions.get(path)).toEqual({ file: 'f.yaml', line, column });
  });

  it('contain no default values', () => {
    expect(positions.has('InitConfiguration.timeouts')).toBe(false);
  });
});
