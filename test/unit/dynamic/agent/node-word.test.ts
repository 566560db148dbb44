import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../../../src/base/json.ts';
import { minorOfNode, readNodeReport } from '../../../../src/dynamic/agent/node-word.ts';
import type { KubeObject } from '../../../../src/kube/object.ts';

const AT = Date.parse('2030-01-01T00:00:10.900Z');
const node = (...conditions: readonly JsonObject[]): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name: 'n' },
  status: { conditions, nodeInfo: { kubeletVersion: 'v1.31.2' } },
});
const ready = (status: string, second: string): JsonObject => ({
  type: 'Ready',
  status,
  reason: 'R',
  message: 'm',
  lastHeartbeatTime: `2030-01-01T00:00:${second}Z`,
});

describe('readNodeReport', () => {
  it.each([
    ['nothing while the Node is not known', null, null],
    ['Ready of the kubelet that runs', node(ready('True', '10')), { is: true, why: '' }],
    ['nothing of what the kubelet before said', node(ready('True', '09')), null],
    ['nothing bad of what the kubelet before said', node(ready('False', '09')), null],
    ['NotReady of the kubelet that runs', node(ready('False', '11')), { is: false, why: 'Ready is False: R: m' }],
    [
      'Unknown, which is the word of the node controller, whenever it is',
      node(ready('Unknown', '02')),
      { is: false, why: 'Ready is Unknown: R: m' },
    ],
    ['nothing of a Node that has said nothing', node(), null],
  ])('takes %s', (_, object, expected) => {
    expect(readNodeReport(object, AT).ready).toEqual(expected);
  });

  it('names pressures, but no other conditions', () => {
    const pressure = (type: string, status: string): JsonObject => ({ type, status });
    const object = node(
      ready('True', '11'),
      pressure('DiskPressure', 'True'),
      pressure('PIDPressure', 'False'),
      pressure('KubeletConfigOk', 'True'),
    );
    expect(readNodeReport(object, AT).pressures).toEqual(['DiskPressure']);
  });

  it('returns the minor, or the newest without one', () => {
    expect(minorOfNode(node())).toBe(31);
    expect(minorOfNode(null)).toBe(36);
  });
});
