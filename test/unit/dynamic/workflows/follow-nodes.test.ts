import { expect, it } from 'vitest';
import { watchNodes } from '../../../../src/dynamic/workflows/follow-nodes.ts';
import { CONFIG_SOURCE_ANNOTATION, CONFIG_STATUS_ANNOTATION } from '../../../../src/kubelet/layers/config-source.ts';
import { fakeCluster } from '../../../support/fake-cluster.ts';

const node = (name: string) => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name },
  status: { nodeInfo: { kubeletVersion: 'v1.36.2' } },
});
const source = { configMap: { namespace: 'kube-system', name: 'a', kubeletConfigKey: 'kubelet' } };

it('reports changes of nodes with one watch of Nodes and one of Events', async () => {
  const cluster = fakeCluster({ objects: [node('n1'), node('n2')] });
  const stop = new AbortController();
  const reported: string[] = [];
  const watching = watchNodes(
    [],
    {
      cluster,
      // The clock does not advance.
      clock: {
        now: () => new Date('2030-01-01'),
        sleep: (_, signal) => new Promise((_resolve, reject) => signal?.addEventListener('abort', () => reject(signal.reason))),
      },
      random: () => 0.5,
      signal: stop.signal,
      onIssue: (error) => reported.push(String(error)),
    },
    (nodes) => reported.push(nodes.map(({ config, verdict }) => `${config.name} ${verdict.state}`).join(', ')),
  );
  const turn = async (): Promise<void> => {
    for (let i = 0; i < 10; i++) await new Promise((resolve) => setImmediate(resolve));
  };
  await turn();
  expect(reported.at(-1)).toBe('n1 off, n2 off');
  const annotations = { [CONFIG_SOURCE_ANNOTATION]: JSON.stringify(source), [CONFIG_STATUS_ANNOTATION]: '{}' };
  await cluster.patch({ apiVersion: 'v1', kind: 'Node', name: 'n2' }, 'merge', { metadata: { annotations } });
  await turn();
  expect(reported.at(-1)).toBe('n1 off, n2 waiting');
  await cluster.delete({ apiVersion: 'v1', kind: 'Node', name: 'n1' });
  await turn();
  expect(reported.at(-1)).toBe('n2 waiting');
  expect(cluster.calls.filter((call) => /^(list|watch)/.test(call)).sort()).toEqual([
    'list Event in default',
    'list Node',
    'watch Event in default',
    'watch Node',
  ]);
  stop.abort();
  await cluster.close();
  await watching;
});
