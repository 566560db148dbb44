import { isJsonObject, type Json } from '../../base/json.ts';
import type { KubeObject } from '../../kube/object.ts';
import {
  CONFIG_SOURCE_ANNOTATION,
  type ConfigIdentity,
  type ConfigSource,
  parseConfigSource,
  parseSourceAnnotation,
  sameIdentity,
  sameSource,
} from '../layers/config-source.ts';
import { readAssigner } from './assigned-by.ts';
import { reportedStatus, sourceInForce } from './source-in-force.ts';

/** Where a kubelet has its configuration from. */
export type NodeSource =
  /** Its configuration file; without `--config`: its flags alone. `path`: another file than kubeadm's. */
  | { readonly kind: 'file'; readonly dropIns: number; readonly path?: string }
  | { readonly kind: 'config-map'; readonly source: ConfigSource; readonly dropIns: number }
  /** Not observed, as a clause. */
  | { readonly kind: 'unknown'; readonly why: string };

/** The source that the host shows, before it is compared with the Node. */
export type HostSource =
  | NodeSource
  /** No kubelet runs, and no agent has selected the configuration of its next start. */
  | { readonly kind: 'none' }
  /** A kubelet up to 1.23 with an assignment: it runs the first one, or the second one if the first cannot be loaded. */
  | { readonly kind: 'native'; readonly candidates: readonly ConfigIdentity[]; readonly dropIns: number };

/**
 * Decides where a kubelet has its configuration from. The running process decides; the Node only adds what the
 * host does not show.
 * @param node null: the Node was not read
 * @returns null: no kubelet runs
 */
export function resolveNodeSource(host: HostSource, node: KubeObject | null): NodeSource | null {
  const reported = node === null ? null : sourceInForce(node);
  switch (host.kind) {
    case 'none':
      return null;
    case 'native': {
      const source = resolveCandidate(host.candidates, node);
      return source === null
        ? { kind: 'file', dropIns: host.dropIns }
        : { kind: 'config-map', source: sourceOf(source), dropIns: host.dropIns };
    }
    case 'unknown':
      return reported === null ? host : { kind: 'config-map', source: sourceOf(reported), dropIns: 0 };
    default:
      return host;
  }
}

/**
 * The version of a ConfigMap that a kubelet up to 1.23 runs: the one that it reports as active, else the first.
 * @returns null: it reports that it could not use its assignment and runs its local configuration
 */
export function resolveCandidate(candidates: readonly ConfigIdentity[], node: KubeObject | null): ConfigIdentity | null {
  const status = node === null ? null : reportedStatus(node);
  if (status !== null && status.active === null && status.error !== null) return null;
  return candidates.find((one) => sameIdentity(one, status?.active ?? null)) ?? candidates[0] ?? null;
}

/**
 * When the running ConfigMap was assigned to a Node.
 * @returns null: unknown, or the Node has another assignment by now
 */
export function assignedAt(node: KubeObject | null, source: ConfigSource): Date | null {
  if (node === null) return null;
  const { spec } = node as { readonly spec?: Json };
  const native = parseConfigSource(isJsonObject(spec) ? spec.configSource : undefined).source;
  const assigned = parseSourceAnnotation(node.metadata.annotations?.[CONFIG_SOURCE_ANNOTATION]).source ?? native;
  return sameSource(assigned, source) ? (readAssigner(node, source)?.at ?? null) : null;
}

/** `file`, `file + 2 drop-ins`, `/etc/kubelet.yaml`, `kube-system/node-config`, `unknown`. */
export function describeNodeSource(source: NodeSource): string {
  switch (source.kind) {
    case 'unknown':
      return 'unknown';
    case 'file':
      return `${source.path ?? 'file'}${dropInText(source.dropIns)}`;
    case 'config-map':
      return `${source.source.namespace}/${source.source.name}${dropInText(source.dropIns)}`;
  }
}

function dropInText(count: number): string {
  return count === 0 ? '' : ` + ${count === 1 ? '1 drop-in' : `${count} drop-ins`}`;
}

function sourceOf({ namespace, name, kubeletConfigKey }: ConfigSource): ConfigSource {
  return { namespace, name, kubeletConfigKey };
}
