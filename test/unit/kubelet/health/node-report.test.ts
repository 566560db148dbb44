import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../../../src/base/json.ts';
import type { KubeObject } from '../../../../src/kube/object.ts';
import { minorOfNode, readNodeReport } from '../../../../src/kubelet/health/observe-change.ts';

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
    ['nothing while the Node is unknown', null, null],
    ['Ready of the current kubelet process', node(ready('True', '10')), { is: true, why: '' }],
    ['no Ready of the previous kubelet process', node(ready('True', '09')), null],
    ['no NotReady of the previous kubelet process', node(ready('False', '09')), null],
    ['NotReady of the current kubelet process', node(ready('False', '11')), { is: false, why: 'Ready is False: R: m' }],
    [
      'Unknown, which is the word of the node controller, whenever it is',
      node(ready('Unknown', '02')),
      { is: false, why: 'Ready is Unknown: R: m' },
    ],
    ['nothing of a Node without conditions', node(), null],
  ])('returns %s', (_, object, expected) => {
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

  it('returns the minor version, or the default if the Node reports none', () => {
    expect(minorOfNode(node())).toBe(31);
    expect(minorOfNode(null)).toBe(36);
  });
});
