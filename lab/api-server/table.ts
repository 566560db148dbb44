import type { JsonObject } from '../../src/base/json.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import type { ResourceType } from '../../src/kube/resources.ts';
import { itemsOf, memberOf, textOf } from './members.ts';
import { qualifiedResource } from './served-kinds.ts';

/** A column of `kubectl get`; `wide` columns only with `-o wide`. */
interface Column {
  readonly name: string;
  readonly type?: 'string' | 'integer';
  readonly wide?: boolean;
  readonly cell: (object: KubeObject, now: Date) => string | number;
}

const NAME: Column = { name: 'Name', cell: ({ metadata }) => metadata.name };
const AGE: Column = { name: 'Age', cell: ({ metadata }, now) => ageOf(metadata.creationTimestamp, now) };
const ROLE = 'node-role.kubernetes.io/';
const NONE = '<none>';

const COLUMNS: Readonly<Record<string, readonly Column[]>> = {
  configmaps: [NAME, { name: 'Data', type: 'integer', cell: (object) => keyCount(object, 'data', 'binaryData') }, AGE],
  secrets: [
    NAME,
    { name: 'Type', cell: (secret) => textOf(secret, 'type') },
    { name: 'Data', type: 'integer', cell: (secret) => keyCount(secret, 'data') },
    AGE,
  ],
  namespaces: [NAME, { name: 'Status', cell: (namespace) => textOf(memberOf(namespace, 'status'), 'phase') }, AGE],
  nodes: [
    NAME,
    { name: 'Status', cell: nodeStatus },
    { name: 'Roles', cell: nodeRoles },
    AGE,
    { name: 'Version', cell: (node) => nodeInfo(node, 'kubeletVersion') },
    { name: 'Internal-IP', wide: true, cell: (node) => addressOf(node, 'InternalIP') },
    { name: 'External-IP', wide: true, cell: (node) => addressOf(node, 'ExternalIP') },
    { name: 'OS-Image', wide: true, cell: (node) => nodeInfo(node, 'osImage') || '<unknown>' },
    { name: 'Kernel-Version', wide: true, cell: (node) => nodeInfo(node, 'kernelVersion') || '<unknown>' },
    { name: 'Container-Runtime', wide: true, cell: (node) => nodeInfo(node, 'containerRuntimeVersion') || '<unknown>' },
  ],
  'certificatesigningrequests.certificates.k8s.io': [
    NAME,
    AGE,
    { name: 'SignerName', cell: (csr) => textOf(memberOf(csr, 'spec'), 'signerName') },
    { name: 'Requestor', cell: (csr) => textOf(memberOf(csr, 'spec'), 'username') },
    { name: 'RequestedDuration', cell: requestedDuration },
    { name: 'Condition', cell: csrCondition },
  ],
  'leases.coordination.k8s.io': [NAME, { name: 'Holder', cell: (lease) => textOf(memberOf(lease, 'spec'), 'holderIdentity') }, AGE],
  events: [
    { name: 'Last Seen', cell: (event, now) => ageOf(textOf(event, 'lastTimestamp') || event.metadata.creationTimestamp, now) },
    { name: 'Type', cell: (event) => textOf(event, 'type') },
    { name: 'Reason', cell: (event) => textOf(event, 'reason') },
    { name: 'Object', cell: (event) => involved(memberOf(event, 'involvedObject')) },
    { name: 'Message', cell: (event) => textOf(event, 'message') },
  ],
};

/** Whether a client requests a table: `application/json;as=Table;v=v1;g=meta.k8s.io`. */
export function wantsTable(accept: string | undefined): boolean {
  const first = (accept ?? '').split(',')[0] ?? '';
  return /;\s*as=Table\b/.test(first) && /;\s*v=v1\b/.test(first);
}

/**
 * Renders objects as table rows.
 * @param metadata of the list, or of the table of a single object
 * @see Kubernetes API concepts, "Receiving resources as Tables"
 */
export function renderTable(type: ResourceType, objects: readonly KubeObject[], metadata: JsonObject, now: Date): JsonObject {
  const columns = COLUMNS[qualifiedResource(type)] ?? [NAME, AGE];
  return {
    kind: 'Table',
    apiVersion: 'meta.k8s.io/v1',
    metadata,
    columnDefinitions: columns.map(({ name, type: cellType = 'string', wide }) => ({
      name,
      type: cellType,
      format: name === 'Name' ? 'name' : '',
      description: '',
      priority: wide ? 1 : 0,
    })),
    rows: objects.map((object) => ({
      cells: columns.map(({ cell }) => cell(object, now)),
      object: { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', metadata: object.metadata },
    })),
  };
}

/** The age in kubectl's format: 45s, 3m, 5h, 12d, 2y. */
function ageOf(since: string | undefined, now: Date): string {
  const seconds = Math.floor((now.getTime() - Date.parse(since ?? '')) / 1000);
  if (!Number.isFinite(seconds)) return '<unknown>';
  return shortDuration(Math.max(seconds, 0));
}

function shortDuration(seconds: number): string {
  const [minute, hour, day, year] = [60, 3600, 24 * 3600, 365 * 24 * 3600];
  if (seconds < 2 * minute) return `${seconds}s`;
  if (seconds < 3 * hour) return `${Math.floor(seconds / minute)}m`;
  if (seconds < 2 * day) return `${Math.floor(seconds / hour)}h`;
  return seconds < 2 * year ? `${Math.floor(seconds / day)}d` : `${Math.floor(seconds / year)}y`;
}

function keyCount(object: KubeObject, ...members: readonly string[]): number {
  return members.reduce((sum, member) => sum + Object.keys(memberOf(object, member)).length, 0);
}

function nodeStatus(node: KubeObject): string {
  const ready = itemsOf(memberOf(node, 'status'), 'conditions').find((condition) => condition.type === 'Ready')?.status;
  const status = ready === 'True' ? 'Ready' : ready === undefined ? 'Unknown' : 'NotReady';
  return memberOf(node, 'spec').unschedulable === true ? `${status},SchedulingDisabled` : status;
}

function nodeRoles({ metadata }: KubeObject): string {
  const roles = Object.keys(metadata.labels ?? {}).flatMap((key) => (key.startsWith(ROLE) ? [key.slice(ROLE.length)] : []));
  return roles.sort().join(',') || NONE;
}

function nodeInfo(node: KubeObject, name: string): string {
  return textOf(memberOf(memberOf(node, 'status'), 'nodeInfo'), name);
}

function addressOf(node: KubeObject, type: string): string {
  const found = itemsOf(memberOf(node, 'status'), 'addresses').find((address) => address.type === type);
  return textOf(found, 'address') || NONE;
}

function requestedDuration(csr: KubeObject): string {
  const seconds = memberOf(csr, 'spec').expirationSeconds;
  return typeof seconds === 'number' ? shortDuration(seconds) : NONE;
}

function csrCondition(csr: KubeObject): string {
  const status = memberOf(csr, 'status');
  const types = itemsOf(status, 'conditions').map((condition) => textOf(condition, 'type'));
  const decided = ['Denied', 'Approved'].find((type) => types.includes(type)) ?? 'Pending';
  const failed = types.includes('Failed') ? ',Failed' : '';
  return `${decided}${failed}${textOf(status, 'certificate') === '' ? '' : ',Issued'}`;
}

function involved(object: JsonObject): string {
  return `${textOf(object, 'kind').toLowerCase()}/${textOf(object, 'name')}`;
}
