import { isJsonObject, type Json, type JsonObject } from '../../base/json.ts';
import type { KubeObject } from '../../kube/object.ts';
import { parseMinor } from '../catalogue/catalogue.ts';
import { objectAt, objectOf, objectsAt, textAt, valueAt } from '../documents/values.ts';
import {
  CONFIG_SOURCE_ANNOTATION,
  CONFIG_STATUS_ANNOTATION,
  type ConfigIdentity,
  type ConfigSource,
  type ConfigStatus,
  describeSource,
  parseConfigSource,
  parseConfigStatus,
  parseSourceAnnotation,
  parseStatusAnnotation,
  sameIdentity,
  sameSource,
} from '../layers/config-source.ts';
import { LAST_DYNAMIC_MINOR } from './dynamic-store.ts';

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
  const native = parseConfigSource(valueAt(node, 'spec.configSource')).source;
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

/**
 * The ConfigMap that an agent, or a kubelet up to 1.23, reports as active.
 * @returns null: the local configuration. The status of an earlier kubelet version on the Node is ignored.
 */
export function sourceInForce(node: KubeObject): ConfigIdentity | null {
  return reportedStatus(node)?.active ?? null;
}

/** The status that an agent, or a kubelet up to 1.23, reports; null: none. */
export function reportedStatus(node: KubeObject): ConfigStatus | null {
  const reported = node.metadata.annotations?.[CONFIG_STATUS_ANNOTATION];
  if (reported !== undefined) return parseStatusAnnotation(reported);
  const minor = parseMinor(textAt(node, 'status.nodeInfo.kubeletVersion'));
  if (minor === null || minor > LAST_DYNAMIC_MINOR) return null;
  return parseConfigStatus(valueAt(node, 'status.config'));
}

/**
 * Annotation of a Node with the author and the time of its assignment, as JSON. Informational only: the node
 * itself can write it.
 */
export const ASSIGNED_BY_ANNOTATION = 'kubeletadm.dev/assigned-by';

/** The node can write any text. */
const MAX_REASON = 500;

export interface Assigner {
  readonly by: string;
  readonly at: Date | null;
  /** `--reason` of the assignment; null: none. */
  readonly reason: string | null;
}

/** The author of an assignment that is being made. */
export interface NewAssigner {
  readonly by: string;
  readonly at: Date;
  readonly reason?: string | undefined;
}

/** Returns the text of the annotation. @param source null: the local configuration */
export function formatAssignedBy(source: ConfigSource | null, { by, at, reason }: NewAssigner): string {
  const why = reason === undefined ? {} : { reason };
  return JSON.stringify({ source: source === null ? 'local' : describeSource(source), by, at: at.toISOString(), ...why });
}

/**
 * Returns the author of a Node's current assignment: from the annotation if it describes this source,
 * otherwise from managedFields (`manager kubectl-patch`).
 * @returns null when neither names one
 */
export function readAssigner({ metadata }: KubeObject, source: ConfigSource | null): Assigner | null {
  return fromAnnotation(metadata.annotations?.[ASSIGNED_BY_ANNOTATION], source) ?? fromManagedFields(objectsAt(metadata, 'managedFields'));
}

function fromAnnotation(text: string | undefined, source: ConfigSource | null): Assigner | null {
  try {
    const value = JSON.parse(text ?? 'null') as Json;
    if (!isJsonObject(value) || typeof value.by !== 'string') return null;
    if (value.source !== (source === null ? 'local' : describeSource(source))) return null;
    return { by: value.by, at: dateOf(value.at), reason: typeof value.reason === 'string' ? value.reason.slice(0, MAX_REASON) : null };
  } catch {
    return null;
  }
}

function fromManagedFields(entries: readonly JsonObject[]): Assigner | null {
  const owners = entries.flatMap(({ manager, fieldsV1, time }) =>
    typeof manager === 'string' && ownsSource(objectOf(fieldsV1)) ? [{ by: `manager ${manager}`, at: dateOf(time), reason: null }] : [],
  );
  return owners.toSorted((a, b) => (b.at?.getTime() ?? 0) - (a.at?.getTime() ?? 0))[0] ?? null;
}

function ownsSource(fields: JsonObject): boolean {
  const annotations = objectAt(fields, 'f:metadata.f:annotations');
  return valueAt(fields, 'f:spec.f:configSource') !== undefined || annotations[`f:${CONFIG_SOURCE_ANNOTATION}`] !== undefined;
}

function dateOf(value: Json | undefined): Date | null {
  const at = new Date(typeof value === 'string' ? value : Number.NaN);
  return Number.isNaN(at.getTime()) ? null : at;
}
