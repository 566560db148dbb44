import type { KubeObject } from '../../src/kube/object.ts';
import type { ResourceType } from '../../src/kube/resources.ts';
import { type Answer, PAGE_NOT_FOUND } from './exchange.ts';
import { itemsOf, memberOf, textOf } from './members.ts';
import type { ResourceRequest } from './request-info.ts';
import { notFound, StatusError } from './status.ts';
import type { Store } from './store.ts';

/**
 * Substitutes the kubelet of a node behind `nodes/NAME/proxy`.
 * @param path with a leading slash, e.g. `/configz`
 * @returns null: unknown path, which a kubelet answers with plain text; `down`: the kubelet is not listening
 */
export type NodeProxy = (path: string) => Answer | null | 'down';

/**
 * Answers a GET to a kubelet through the proxy.
 * @throws StatusError 404 for a missing Node, 503 for an unreachable kubelet
 * @see kube-apiserver 1.36, observed
 */
export function answerNodeProxy(
  store: Store,
  proxies: ReadonlyMap<string, NodeProxy>,
  nodes: ResourceType,
  { name, path }: Pick<ResourceRequest, 'name' | 'path'>,
): Answer {
  const node = store.get(nodes, '', name);
  if (node === null) throw notFound(nodes, name);
  const proxy = proxies.get(name) ?? (() => 'down' as const);
  const answer = proxy(path.replace(/^.*?\/proxy(?=\/|$)/, '') || '/') ?? PAGE_NOT_FOUND;
  if (answer !== 'down') return answer;
  const message = `error trying to reach service: dial tcp ${addressOf(node)}:10250: connect: connection refused`;
  throw new StatusError(503, message, { reason: 'ServiceUnavailable' });
}

function addressOf(node: KubeObject): string {
  const internal = itemsOf(memberOf(node, 'status'), 'addresses').find((each) => textOf(each, 'type') === 'InternalIP');
  return textOf(internal, 'address') || node.metadata.name;
}
