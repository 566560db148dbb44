import { expect, it } from 'vitest';
import { ALL, NODES, tableOf } from '../../../src/cli/status-views.ts';
import { assessNodeConfig } from '../../../src/dynamic/status/assess-node-config.ts';
import { readNodeConfig } from '../../../src/dynamic/status/node-config.ts';
import { overviewOfNodes } from '../../../src/fleet/use-cases/overview.ts';
import { CONFIG_SOURCE_ANNOTATION } from '../../../src/kubelet/layers/config-source.ts';

const NOW = new Date('2030-01-01T00:00:00Z');

it('status explains an assignment that is not in force, as dynamic status does', () => {
  const node = (name: string, annotations: Readonly<Record<string, string>>) => {
    const config = readNodeConfig({
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name, annotations },
      status: { nodeInfo: { kubeletVersion: 'v1.36.2' } },
    });
    return { config, verdict: assessNodeConfig(config, null, NOW) };
  };
  const overview = overviewOfNodes([node('n1', { [CONFIG_SOURCE_ANNOTATION]: '{}' }), node('n2', {})]);
  const [n1, n2] = tableOf(ALL, overview, NOW).rows;
  expect(n1?.cells).toContain('not-synced');
  expect(n1?.notes[0]).toContain('n1: invalid assignment in the annotation');
  expect(n1?.notes).toEqual(tableOf(NODES, overview, NOW).rows[0]?.notes);
  expect(n2?.notes).toEqual([]);
});
