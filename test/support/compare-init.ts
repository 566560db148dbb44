import { isDeepStrictEqual } from 'node:util';
import { parse } from 'yaml';
import { isJsonObject, type Json, type JsonObject } from '../../src/base/json.ts';
import { renderTable } from '../../src/base/text/table.ts';
import type { PlanDocument } from '../../src/host/plan/document.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import type { InitExpectation } from './kubeadm-recordings.ts';

/** Files that kubeletadm writes and kubeadm does not, with the reason. */
const FILES_OF_OURS = [
  { path: /^\/etc\/systemd\/system\/kubelet\.service/, reason: 'the kubelet package, which provides them, is not installed on the host' },
  { path: /^\/var\/lib\/kubelet\/kubeletadm-node\.yaml$/, reason: 'saves the settings of this node' },
  { path: /\/(?:[^/]*\.key|sa\.pub)$/, reason: 'the recordings list certificates, not keys' },
] as const;

/** Objects that kubeletadm creates and a dry run of kubeadm does not show, with the reason. */
const OBJECTS_OF_OURS = [
  { name: 'ClusterRoleBinding kubeadm:cluster-admins', reason: 'kubeadm creates it at its first login, which a dry run omits' },
] as const;

/**
 * Values that differ from the recording, with the reason. `ours` converts the recorded value to the expected
 * one.
 */
const WANTED_DIFFERENCES: readonly {
  readonly what: RegExp;
  readonly when?: (input: string) => boolean;
  readonly ours: (theirs: Json) => Json;
  readonly reason: string;
}[] = [
  {
    what: /config\.yaml$|^ConfigMap kube-system\/kubelet-config$/,
    when: (input) => /^rotateCertificates: false$/m.test(input),
    ours: (theirs) => replaceKey(theirs, 'rotateCertificates', false),
    reason: 'kubeadm turns the false of the user silently into true; it is kept, with a warning',
  },
  {
    what: /^Secret kube-system\/bootstrap-token-/,
    ours: (theirs) => {
      const { data, ...object } = theirs as JsonObject;
      return { ...object, data: Object.fromEntries(Object.keys(data as JsonObject).map((key) => [key, '[secret]'])) };
    },
    reason: 'tokens are shown nowhere',
  },
  {
    what: /^ConfigMap kube-public\/cluster-info$/,
    ours: (theirs) => replaceKey(theirs, 'certificate-authority-data', '@CA@'),
    reason: 'every run generates another CA',
  },
  {
    what: /^Node \//,
    ours: (theirs) => unpatched(theirs as KubeObject),
    reason: 'kubeadm shows the Node it found and not the patch, which other tests check',
  },
];

/** One file or object that both programs write. */
export interface Comparison {
  readonly what: string;
  readonly ours: unknown;
  /** The recorded value, with the wanted differences applied. */
  readonly desired: unknown;
  readonly equal: boolean;
  /** Reasons for wanted differences; empty if none. */
  readonly reason: string;
}

/**
 * Compares the plan of `init --dry-run` with kubeadm's recording for the same input: all of the recording,
 * and no other entries.
 */
export function compareInit(plan: PlanDocument, expected: InitExpectation, input: string): readonly Comparison[] {
  const comparisons: Comparison[] = [];
  const compare: Compare = (what, ours, theirs) => {
    const differences = WANTED_DIFFERENCES.filter((each) => each.what.test(what) && (each.when?.(input) ?? true));
    const desired = differences.reduce((value, each) => each.ours(value), theirs);
    const reason = differences.map((each) => each.reason).join('; ');
    comparisons.push({ what, ours, desired, equal: isDeepStrictEqual(plain(ours), plain(desired)), reason });
  };
  compareFiles(plan, expected, compare);
  compareCertificates(plan, expected, compare);
  compareObjects(plan, expected, compare);
  return comparisons;
}

/** The comparisons as a table. */
export function comparisonTable(comparisons: readonly Comparison[]): string {
  const rows = comparisons.map(({ what, equal, reason }) => [what, equal ? 'equal' : 'DIFFERS', reason]);
  return renderTable([['WHAT', 'KUBEADM 1.36.2', 'WANTED DIFFERENCE'], ...rows]).join('\n');
}

type Compare = (what: string, ours: unknown, theirs: Json) => void;

function changesOf(plan: PlanDocument): ReadonlyMap<string, JsonObject> {
  const writes = (plan.hosts[0]?.changes ?? []).filter(({ kind }) => kind === 'write-file');
  return new Map(writes.map((change) => [String(change.path), change]));
}

function compareFiles(plan: PlanDocument, { files = {}, kubeletFiles }: InitExpectation, compare: Compare): void {
  const changes = changesOf(plan);
  const kubelet = Object.entries(kubeletFiles).map(([name, text]) => [`/var/lib/kubelet/${name}`, text] as const);
  const recorded = new Map([...Object.entries(files), ...kubelet]);
  for (const [path, text] of recorded) compare(path, read(String(changes.get(path)?.content)), read(text));
  if (Object.keys(files).length === 0) return;
  const more = [...changes].filter(([path, { content }]) => content !== undefined && !recorded.has(path)).map(([path]) => path);
  const unexpected = more.filter((path) => !FILES_OF_OURS.some((each) => each.path.test(path)));
  compare('files that kubeadm does not write', unexpected, []);
}

function compareCertificates(plan: PlanDocument, { pki, kubeconfigs }: InitExpectation, compare: Compare): void {
  const described = [...changesOf(plan)].filter(([, { certificate }]) => certificate !== undefined);
  const [certificates, configs] = [
    described.filter(([path]) => path.endsWith('.crt')),
    described.filter(([path]) => path.endsWith('.conf')),
  ];
  if (pki !== undefined) {
    const directory = certificates.find(([, { phase }]) => phase === 'certs/ca')?.[0].replace(/ca\.crt$/, '') ?? '';
    const ours = new Map(certificates.map(([path, change]) => [path.slice(directory.length), withDays(change.certificate)]));
    for (const [name, theirs] of Object.entries(pki)) compare(`pki/${name}`, ours.get(name), theirs as JsonObject);
    compare('names of certificates', [...ours.keys()].sort(), Object.keys(pki).sort());
  }
  if (kubeconfigs !== undefined) {
    const ours = new Map(
      configs.map(([path, { kubeconfig, certificate }]) => [
        path.replace('/etc/kubernetes/', ''),
        { ...(kubeconfig as JsonObject), clientCertificate: withDays(certificate) },
      ]),
    );
    for (const [name, theirs] of Object.entries(kubeconfigs)) compare(name, ours.get(name), theirs as JsonObject);
    compare('names of kubeconfigs', [...ours.keys()].sort(), Object.keys(kubeconfigs).sort());
  }
}

function compareObjects(plan: PlanDocument, { objects, apiActions }: InitExpectation, compare: Compare): void {
  const changes = plan.cluster.changes.map(({ action, object }) => ({
    action: String(action).toUpperCase(),
    object: object as KubeObject,
  }));
  const recorded = apiActions ?? objects?.map((object) => ({ action: 'CREATE', object })) ?? [];
  const theirs = recorded.flatMap(({ action, object }) => (object === undefined ? [] : [{ action, object }]));
  for (const { action, object } of theirs) {
    const ours = changes.find((each) => each.action === action && nameOf(each.object) === nameOf(object));
    compare(nameOf(object), action === 'PATCH' ? unpatched(ours?.object) : comparable(ours?.object), comparable(object));
  }
  if (apiActions === undefined) return;
  const more = OBJECTS_OF_OURS.map(({ name }) => name.replace(' ', ' /'));
  const sequence = changes.map(({ object }) => nameOf(object)).filter((each) => !more.some((ours) => ours === each));
  // The last line of a recording may be truncated.
  const names = theirs.map(({ object }) => nameOf(object));
  compare('order of objects', sequence.slice(0, theirs.length), names);
  compare('number of objects', sequence.length, recorded.length);
}

function nameOf({ kind, metadata }: KubeObject): string {
  return `${kind} ${metadata.namespace ?? ''}/${metadata.name}`;
}

/** The object with its embedded YAML parsed. A hash covers the text: it is equal when the text is equal. */
function comparable(object: KubeObject | undefined): Json {
  if (object?.kind !== 'ConfigMap') return (object ?? null) as Json;
  const texts = Object.entries(object.data as Readonly<Record<string, string>>);
  return replaceKey(
    { ...object, data: Object.fromEntries(texts.map(([key, text]) => [key, read(text)])) },
    'certificate-authority-data',
    '@CA@',
  );
}

function unpatched(object: KubeObject | undefined): Json {
  return object === undefined ? null : { apiVersion: object.apiVersion, kind: object.kind, metadata: { name: object.metadata.name } };
}

function read(text: string): Json {
  try {
    return parse(text) as Json;
  } catch {
    return text;
  }
}

function plain(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value ?? null));
}

/** A copy in which every member with that name has another value. */
function replaceKey(value: Json, key: string, by: Json): Json {
  if (Array.isArray(value)) return value.map((item: Json) => replaceKey(item, key, by));
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, name === key ? by : replaceKey(member, key, by)]));
}

/** The recordings contain validity in days in place of times. */
function withDays(certificate: Json | undefined): Json {
  if (!isJsonObject(certificate)) return null;
  const { notBefore, notAfter, ...rest } = certificate;
  return { ...rest, validDays: Math.floor((Date.parse(String(notAfter)) - Date.parse(String(notBefore))) / 86_400_000) };
}
