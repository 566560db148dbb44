import { isJsonObject, type JsonObject } from '../../base/json.ts';
import { maskSecrets } from '../../base/text/mask.ts';
import { maskPodSource } from '../../base/text/mask-pod-source.ts';
import { SensitiveText } from '../../base/text/secret.ts';
import { encodeYaml, type YamlValue } from '../../codec/yaml-encode.ts';
import type { EtcdChange } from '../../kube/etcd-cluster.ts';
import { type KubeObject, ownerReference } from '../../kube/object.ts';
import { type ClusterChange, changedRef, type HostChange, isClusterChange, type PhasePlan, type Warning } from './change.ts';
import { formatMode } from './diff-file.ts';
import { type FieldChange, highestImpact, type Impact } from './impact.ts';
import { type DiffTexts, diffEqualTextsOnce, unifiedDiff } from './text-diff.ts';

export interface NamedPhasePlan {
  readonly phase: string;
  readonly plan: PhasePlan;
}

export interface HostPlan {
  readonly name: string;
  readonly phases: readonly NamedPhasePlan[];
  /** Source of each field of a rendered file, by path; only when requested. */
  readonly origins?: Readonly<Record<string, Readonly<Record<string, string>>>>;
  /** Host-specific values (`node`, `node-ip`), which are ignored when hosts are grouped. */
  readonly own?: Readonly<Record<string, string>>;
}

/** The plan as printed by `--dry-run -o json`: a stable interface. Secrets appear as `[secret]`. */
export interface PlanDocument {
  readonly apiVersion: 'kubeletadm.dev/v1alpha1';
  readonly kind: 'Plan';
  readonly hosts: readonly {
    readonly name: string;
    readonly changes: readonly JsonObject[];
    readonly noops: readonly JsonObject[];
    /** Null: no running kubelet is changed. */
    readonly highestImpact: Impact | null;
  }[];
  readonly highestImpact: Impact | null;
  /** With the context and the server URL of the connected cluster, if any. */
  readonly cluster: Partial<ClusterName> & { readonly changes: readonly JsonObject[] };
  readonly deferred: readonly JsonObject[];
  readonly warnings: readonly JsonObject[];
  /** The phases that the run leaves out (`--skip-phases`); only `upgrade apply`. */
  readonly skippedPhases?: readonly string[];
}

/** The cluster: the server URL, and the context of the kubeconfig if one was used. */
export interface ClusterName {
  readonly context?: string | undefined;
  readonly server: string;
}

/** The cluster in one line of text: `context "admin@shop", https://10.0.0.1:6443`. */
export function formatClusterName({ context, server }: ClusterName): string {
  return `${context === undefined ? '' : `context ${JSON.stringify(context)}, `}${server}`;
}

/** The document of one or several hosts. Cluster changes that several hosts share appear once. */
export function planDocument(
  hosts: readonly HostPlan[],
  warnings: readonly Warning[],
  cluster: ClusterName | null = null,
  diffTexts: DiffTexts = diffEqualTextsOnce(),
): PlanDocument {
  const all = hosts.flatMap((host) => host.phases);
  return {
    apiVersion: 'kubeletadm.dev/v1alpha1',
    kind: 'Plan',
    hosts: hosts.map((host) => hostDocument(host, diffTexts)),
    highestImpact: highestImpact(hosts.map(impactOfPlan)),
    cluster: {
      ...(cluster === null ? {} : { context: cluster.context, server: cluster.server }),
      changes: unique(
        all.flatMap(({ phase, plan }) => plan.changes.filter(isClusterChange).map((change) => clusterChangeDocument(phase, change))),
      ),
    },
    deferred: unique(all.flatMap(({ phase, plan }) => (plan.deferred === undefined ? [] : [{ phase, reason: plan.deferred }]))),
    warnings: unique(
      [...warnings, ...all.flatMap(({ plan }) => plan.warnings ?? [])].map(({ code, message, field }) => ({
        code,
        message,
        ...(field === undefined ? {} : { field }),
      })),
    ),
  };
}

export function planIsEmpty(document: PlanDocument): boolean {
  return document.cluster.changes.length === 0 && document.hosts.every((host) => host.changes.length === 0);
}

function hostDocument(host: HostPlan, diffTexts: DiffTexts): PlanDocument['hosts'][number] {
  const changes = host.phases.flatMap(({ phase, plan }) =>
    plan.changes.flatMap((change) => (isClusterChange(change) ? [] : [hostChangeDocument(phase, change, host.origins, diffTexts)])),
  );
  return {
    name: host.name,
    changes,
    noops: host.phases.flatMap(({ phase, plan }) => (plan.noop === undefined ? [] : [{ phase, reason: plan.noop }])),
    highestImpact: impactOfPlan(host),
  };
}

/** The highest impact of all changes of a host; null: no running kubelet is changed. */
export function impactOfPlan({ phases }: Pick<HostPlan, 'phases'>): Impact | null {
  return highestImpact(phases.flatMap(({ plan }) => plan.changes.map((change) => ('impact' in change ? change.impact : null))));
}

function hostChangeDocument(phase: string, change: HostChange, origins: HostPlan['origins'], diffTexts: DiffTexts): JsonObject {
  const impact = change.impact === undefined ? {} : { impact: change.impact };
  switch (change.kind) {
    case 'write-file': {
      const { path, owner, action, reason, fields } = change;
      const origin = origins?.[path];
      return {
        kind: change.kind,
        phase,
        path,
        mode: formatMode(change.mode),
        owner,
        action,
        ...(change.summary === undefined
          ? { content: maskPodSource(change.content.toString()), diff: fileDiff(change, diffTexts) }
          : (change.summary as unknown as JsonObject)),
        reason,
        ...impact,
        ...fieldsOf(fields),
        ...(origin ? { origin } : {}),
      };
    }
    case 'upload-file':
    case 'put-file': {
      const { kind, path, owner, content, reason } = change;
      const { sha256, size } = content;
      return { kind, phase, path, mode: formatMode(change.mode), owner, sha256, size, reason, ...impact };
    }
    case 'make-directory': {
      const { kind, path, owner, reason } = change;
      return { kind, phase, path, mode: formatMode(change.mode), owner, reason, ...impact };
    }
    case 'remove-file':
      return { kind: change.kind, phase, path: change.path, reason: change.reason, ...impact, ...fieldsOf(change.fields) };
    case 'run-hook': {
      const { kind, fields: _fields, secrets: _secrets, ...rest } = change;
      return { kind, phase, ...rest };
    }
    default: {
      const { kind, fields, ...rest } = change;
      return { kind, phase, ...rest, ...fieldsOf(fields) };
    }
  }
}

function fieldsOf(fields: readonly FieldChange[] | undefined): JsonObject {
  return fields === undefined ? {} : { fields: fields.map((field) => ({ ...field })) };
}

/** The unified diff of a file, with secrets masked on both sides. */
export function fileDiff(change: Extract<HostChange, { kind: 'write-file' }>, diffTexts: DiffTexts = unifiedDiff): string {
  const sensitive = change.content instanceof SensitiveText;
  const after = maskPodSource(change.content.toString());
  const before = change.before === null ? '' : (sensitive ? maskSecrets : maskPodSource)(change.before.content);
  const names = { before: change.before === null ? '/dev/null' : change.path, after: change.path };
  return diffTexts(before, after, names);
}

function clusterChangeDocument(phase: string, change: ClusterChange): JsonObject {
  switch (change.kind) {
    case 'create-object':
      return { phase, action: 'create', object: maskObject(ownedObject(change)), reason: change.reason };
    case 'update-object':
      return {
        phase,
        action: 'update',
        object: maskObject(ownedObject(change)),
        diff: objectDiff(change.before, ownedObject(change)),
        reason: change.reason,
      };
    case 'patch-object':
    case 'mark-node': {
      const { apiVersion, kind, name, namespace } = change.ref;
      const { metadata, ...patch } = change.patch;
      const named = { name, ...(namespace === undefined ? {} : { namespace }), ...(isJsonObject(metadata) ? metadata : {}) };
      const object = { apiVersion, kind, metadata: named, ...patch };
      return { phase, action: 'patch', object, reason: change.reason, ...impactDocument(change) };
    }
    case 'delete-object': {
      const { apiVersion, kind, name, namespace } = change.ref;
      const object = { apiVersion, kind, metadata: { name, ...(namespace === undefined ? {} : { namespace }) } };
      return { phase, action: 'delete', object, reason: change.reason };
    }
    default:
      return { phase, ...etcdMemberDocument(change), reason: change.reason };
  }
}

function impactDocument(change: Extract<ClusterChange, { readonly kind: 'patch-object' | 'mark-node' }>): JsonObject {
  if (change.kind !== 'patch-object' || change.fields === undefined) return {};
  const { impact = null, fields } = change;
  return { impact, fields: fields?.map((field) => ({ ...field })) ?? null };
}

/** An etcd member is shown as an object, so that all changes outside of hosts have one format. */
function etcdMemberDocument(change: EtcdChange): JsonObject {
  const { apiVersion, kind, name } = changedRef(change);
  const member = { apiVersion, kind, metadata: { name } };
  switch (change.kind) {
    case 'add-etcd-learner':
      return { action: 'create', object: { ...member, spec: { peerURLs: [change.peerURL], isLearner: true } } };
    case 'promote-etcd-member':
      return { action: 'patch', object: { ...member, spec: { isLearner: false } } };
    case 'remove-etcd-member':
      return { action: 'delete', object: member };
  }
}

/** Members of metadata that only the API server writes. */
const SERVER_SET: ReadonlySet<string> = new Set(['creationTimestamp', 'generation', 'managedFields', 'resourceVersion', 'selfLink', 'uid']);

/** The unified diff of an object as YAML, without data of a Secret; empty if only such data differ. */
function objectDiff(before: KubeObject, after: KubeObject): string {
  const textOf = ({ status: _, ...object }: KubeObject): string => {
    const metadata = Object.fromEntries(Object.entries(object.metadata).filter(([name]) => !SERVER_SET.has(name)));
    return encodeYaml(maskObject({ ...object, metadata } as JsonObject) as YamlValue);
  };
  const { kind, metadata } = after;
  const name = [kind, metadata.namespace, metadata.name].filter(Boolean).join('/');
  return unifiedDiff(textOf(before), textOf(after), { before: name, after: name });
}

/** With its owner, whose uid is unknown until apply. */
function ownedObject({ object, owner }: Extract<ClusterChange, { object: KubeObject }>): KubeObject {
  return owner === undefined ? object : { ...object, metadata: { ...object.metadata, ownerReferences: [ownerReference(owner, '')] } };
}

/** The object without the data of a Secret, and without the HTTP headers of a kubelet in a ConfigMap. */
export function maskObject(object: JsonObject): JsonObject {
  if (object.kind !== 'Secret' && object.kind !== 'ConfigMap') return object;
  const maskValue = (value: unknown): string => (object.kind === 'Secret' ? '[secret]' : maskPodSource(String(value)));
  const mask = (data: JsonObject): JsonObject => Object.fromEntries(Object.entries(data).map(([key, value]) => [key, maskValue(value)]));
  const isData = (key: string): boolean => key === 'data' || key === 'stringData';
  return Object.fromEntries(Object.entries(object).map(([key, value]) => [key, isData(key) && isJsonObject(value) ? mask(value) : value]));
}

function unique(items: readonly JsonObject[]): readonly JsonObject[] {
  const seen = new Set<string>();
  return items.filter((item) => {
    const key = JSON.stringify(item);
    return seen.has(key) ? false : seen.add(key);
  });
}

export function hasChanges({ phases }: HostPlan): boolean {
  return phases.some(({ plan }) => plan.changes.length > 0);
}

export function hasChangesOrDeferred({ phases }: HostPlan): boolean {
  return phases.some(({ plan }) => plan.changes.length > 0 || plan.deferred !== undefined);
}
