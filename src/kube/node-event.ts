import { formatRfc3339 } from '../base/text/rfc3339.ts';
import type { KubeObject } from './object.ts';

/**
 * In the form of the kubelet's: in the namespace `default`, with the Node's name as its uid.
 * @param event.component name of the program that reports it
 * @param serial distinguishes Events of the same millisecond
 */
export function nodeEvent(
  nodeName: string,
  event: { readonly type: 'Normal' | 'Warning'; readonly reason: string; readonly message: string; readonly component: string },
  at: Date,
  serial: number,
): KubeObject {
  const { type, reason, message, component } = event;
  const time = formatRfc3339(at);
  const unique = (BigInt(at.getTime()) * 1_000_000n + BigInt(serial % 1_000_000)).toString(16);
  return {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: `${nodeName}.${unique}`, namespace: 'default' },
    involvedObject: { kind: 'Node', name: nodeName, uid: nodeName },
    type,
    reason,
    message: message.slice(0, 1024),
    source: { component, host: nodeName },
    firstTimestamp: time,
    lastTimestamp: time,
    count: 1,
  };
}
