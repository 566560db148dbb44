import { formatProblem, isAppError, type Problem } from '../../base/errors.ts';
import { isJsonObject, type JsonObject, jsonEqual } from '../../base/json.ts';
import { documentOfValue } from '../../codec/document-of-value.ts';
import { CONFIG_LIMITS, type SourceDocument, sourceToJson } from '../../codec/source.ts';
import { encodeYaml, withBigIntegers } from '../../codec/yaml-encode.ts';
import { MAX_FILE_BYTES } from '../../host/facts/query.ts';
import {
  type CheckpointFiles,
  checkpointDirectory,
  hashOfFiles,
  isFileName,
  MANIFEST_FILE,
  PAYLOAD_FILE,
} from '../../kubeadm/node-agent/layout.ts';
import type { Catalogue, LiveChange, Minor } from '../../kubelet/catalogue.ts';
import type { ConfigIdentity } from '../../kubelet/config-source.ts';
import { decodeKubeletConfiguration } from '../../kubelet/decode.ts';
import {
  type HostText,
  layerRunningConfig,
  type ParsedHostFile,
  type PlacedFlag,
  parseHostFile,
  type RunningConfig,
  withoutNulls,
} from '../../kubelet/effective/running-config.ts';
import { encodeKubeletConfiguration } from '../../kubelet/encode.ts';
import { type LayeredConfig, leavesOf, mergeConfig, type Origin } from '../../kubelet/layers.ts';
import { describeOverridden, isSetBy } from '../../kubelet/overridden-fields.ts';
import { type ClassifiedChange, classifyChanges, worstLiveChange } from '../../kubelet/validate/classify-changes.ts';
import { type OtherMinorWarning, otherMinorWarning } from '../../kubelet/validate/other-minor.ts';
import { isStartupRule, validateKubeletConfiguration } from '../../kubelet/validate/validate.ts';
import { asKubeletDocument, isOverlayDocument, OVERLAY_KIND } from './overlay.ts';
import type { Candidate, Fault } from './state.ts';
import { OVERRIDDEN } from './status.ts';

/** Label of a Node: the group whose layer it receives. */
export const GROUP_LABEL = 'kubeletadm.dev/group';

/**
 * The highest class of change applied to a running node; higher classes are rejected. A change of class
 * `drain` is also applied to a cordoned node.
 */
export interface ChangePolicy {
  readonly allow: LiveChange;
  /** The Node is unschedulable, which shows that an administrator has drained it. */
  readonly isCordoned: boolean;
}

/** A kubelet, with the settings that override its configuration file. */
export interface StartedKubelet {
  readonly minor: Minor;
  readonly catalogue: Catalogue;
  readonly flags: readonly PlacedFlag[];
  /** Drop-in files of `--config-dir`, which override the file. */
  readonly dropIns: readonly HostText[];
}

/** The current state of the node that receives a payload. */
export interface PayloadNode extends StartedKubelet {
  readonly name: string;
  readonly group: string | null;
  /** Directory of the agent's checkpoints, against which relative paths of a payload are resolved. */
  readonly directory: string;
  /** The kubelet configuration without an assignment. */
  readonly local: HostText;
  /** The effective configuration without apiVersion and kind; null: unknown. */
  readonly running: JsonObject | null;
  readonly cgroupVersion: 1 | 2 | null;
  /** The minor of the kubelet if the catalogue does not contain it; `minor` is then the nearest one. */
  readonly kubeletMinor?: Minor | undefined;
}

/** One version of a ConfigMap, as read from the API server. */
export interface PayloadSource {
  readonly identity: ConfigIdentity;
  /** `data` of the ConfigMap; `binaryData` is ignored. */
  readonly data: Readonly<Record<string, string>>;
}

export interface PreparedPayload {
  readonly candidate: Candidate;
  /** Null if the payload is rejected. */
  readonly files: CheckpointFiles | null;
  /** The leaves that the ConfigMap sets; null: it is complete and replaces the local configuration. */
  readonly sets: readonly string[] | null;
  readonly refusal: Fault | null;
  /** The effective configuration with the payload; null: it could not be determined. */
  readonly config: JsonObject | null;
  /** Warning about the rules used for validation, if they are those of another minor. */
  readonly warning: OtherMinorWarning | null;
}

/**
 * Builds the payload of one node from a ConfigMap, before the node is changed: the document under the key
 * (complete, or an overlay on the local configuration), then the layers `KEY.group.GROUP` and
 * `KEY.node.NAME`. The payload is validated by the rules of the node's kubelet, and each changed field is
 * checked against the policy. The hash covers the result: a version without effect on this node is the same
 * payload.
 */
export function preparePayload({ identity, data }: PayloadSource, node: PayloadNode, policy: ChangePolicy): PreparedPayload {
  const warning = otherMinorWarning(node.kubeletMinor ?? node.minor);
  const refuse = (code: Fault['code'], cause: string, hash: string | null = null, changes: readonly string[] = []): PreparedPayload => ({
    candidate: { identity, hash, changes },
    files: null,
    sets: null,
    refusal: { code, cause },
    config: null,
    warning,
  });
  const key = identity.kubeletConfigKey;
  if (!Object.hasOwn(data, key)) return refuse('LOAD_FAILED', `the ConfigMap has no key ${JSON.stringify(key)} in data`);
  const keys = [key, `${key}.group.${node.group ?? ''}`, `${key}.node.${node.name}`].filter((name) => Object.hasOwn(data, name));
  const local = parseHostFile(node.local);
  let config: JsonObject = {};
  let sets: readonly string[] | null = null;
  for (const name of keys) {
    const layer = readLayer(parseHostFile({ path: name, text: data[name] as string }), node);
    if ('issue' in layer) return refuse('LOAD_FAILED', layer.issue);
    if (!layer.isOverlay && name !== key)
      return refuse('LOAD_FAILED', `the key ${name} of the ConfigMap must contain a document of kind ${OVERLAY_KIND}`);
    const below = name === key && layer.isOverlay ? readLayer(local, node) : { value: config };
    if ('issue' in below) return refuse('LOAD_FAILED', below.issue);
    config = layer.isOverlay ? mergeConfig(withoutNulls(below.value, layer.reported), layer.value) : layer.value;
    if (layer.isOverlay && (name === key || sets !== null)) sets = [...new Set([...(sets ?? []), ...setBy(layer)])];
  }
  const rendered = render(config, node);
  if ('issue' in rendered) return refuse('LOAD_FAILED', rendered.issue);
  const siblings = siblingsOf(config, data);
  const clash = Object.keys(siblings).find((name) => name === PAYLOAD_FILE || name === MANIFEST_FILE || !isFileName(name));
  if (clash !== undefined) return refuse('LOAD_FAILED', `the key ${JSON.stringify(clash)} of the ConfigMap cannot be used as a file name`);
  const files = { ...siblings, [PAYLOAD_FILE]: rendered.text };
  const large = Object.entries(files).find(([, text]) => Buffer.byteLength(text) > MAX_FILE_BYTES);
  if (large !== undefined) return refuse('LOAD_FAILED', `the file ${large[0]} is larger than ${MAX_FILE_BYTES / 1024} KiB`);
  const hash = hashOfFiles(files);

  const verdict = validate(rendered.document, node);
  if (verdict !== null) return refuse('VALIDATION_FAILED', warning === null ? verdict : `${verdict} (${warning.message})`, hash);
  const path = `${checkpointDirectory(node.directory, hash)}/${PAYLOAD_FILE}`;
  const configFile: ParsedHostFile = { path, source: { documents: [rendered.document], problems: [] }, syntax: 'yaml' };
  const found = changesOf(configFile, local, node);
  const changes = [...overriddenBy(found, sets), ...found.ofLocal.map(describeChange)];
  const forbidden = found.ofRunning.filter((change) => !isAllowed(change, policy));
  if (forbidden.length > 0) return refuse('NOT_ALLOWED', describeForbidden(forbidden, policy), hash, changes);
  return { candidate: { identity, hash, changes }, files, sets, refusal: null, config: found.desired, warning };
}

/**
 * The fields that the configz of a kubelet must show for a payload: those that no flag and no drop-in file
 * overrides.
 * @param configFile the payload as the kubelet reads it
 */
export function expectedConfigz(configFile: ParsedHostFile, { minor, catalogue, flags, dropIns }: StartedKubelet): JsonObject {
  const document = configFile.source.documents[0];
  if (document === undefined) return {};
  const { apiVersion: _version, kind: _kind, ...fields } = decodeKubeletConfiguration(document, { minor, catalogue, lenient: true }).value;
  return withoutShadowed(fields, shadowsOf(layerRunningConfig({ catalogue, minor, flags, dropIns, dynamicConfig: null, configFile })));
}

/** The fields of a running kubelet that differ from the expected ones. */
export function differingFields(
  configz: JsonObject,
  expected: JsonObject,
  options: Pick<PayloadNode, 'minor' | 'catalogue'>,
): readonly string[] {
  return classifyChanges(configz, mergeConfig(configz, expected), options).map(({ path }) => path);
}

/** The leaves of an overlay, including those that it removes. */
function setBy({ value, reported }: Extract<Layer, { readonly value: JsonObject }>): readonly string[] {
  const leaves = [...leavesOf(value).keys(), ...leavesOf(reported).keys()];
  return leaves.filter((path) => path !== 'apiVersion' && path !== 'kind');
}

type Layer = { readonly value: JsonObject; readonly reported: JsonObject; readonly isOverlay: boolean } | { readonly issue: string };

/** Reads leniently, as the kubelet does: unknown fields and duplicates are ignored. */
function readLayer({ path: name, source, syntax }: ParsedHostFile, { minor, catalogue }: PayloadNode): Layer {
  const { documents, problems } = source;
  const broken = problems.find(isError);
  if (broken !== undefined) return { issue: formatProblem(broken) };
  const [document] = documents;
  if (document === undefined || document.root === null) return { issue: `${name} is empty` };
  if (documents.length > 1) return { issue: `${name} has more than one document` };
  const isOverlay = isOverlayDocument(document);
  const decoded = decodeKubeletConfiguration(isOverlay ? asKubeletDocument(document) : document, {
    minor,
    catalogue,
    lenient: true,
    syntax,
  });
  const error = decoded.problems.find(isError);
  if (error !== undefined) return { issue: formatProblem(error) };
  const reported = sourceToJson(document.root);
  return { value: decoded.value, reported: isJsonObject(reported) ? reported : {}, isOverlay };
}

function isError({ severity }: Problem): boolean {
  return severity !== 'warning';
}

/** The text of the payload file, and its parsed form. */
interface Rendered {
  readonly text: string;
  readonly document: SourceDocument;
}

function render(config: JsonObject, node: PayloadNode): Rendered | { readonly issue: string } {
  try {
    const value = encodeKubeletConfiguration(config, node);
    const type = node.catalogue.configurationType(node.minor);
    const text = encodeYaml(value, type);
    // The agent reads the file again later, so its own size limit applies.
    if (text.length > CONFIG_LIMITS.characters)
      return { issue: `the configuration has ${text.length} characters with its overlays; the limit is ${CONFIG_LIMITS.characters}` };
    return { text, document: documentOfValue(withBigIntegers(value, type), PAYLOAD_FILE) };
  } catch (error) {
    if (!isAppError(error)) throw error;
    return { issue: error.message };
  }
}

/**
 * Fields whose relative paths are resolved against the directory of the configuration, so that a ConfigMap
 * can contain the files.
 */
const PATH_FIELDS: readonly (readonly string[])[] = [
  ['staticPodPath'],
  ['authentication', 'x509', 'clientCAFile'],
  ['tlsCertFile'],
  ['tlsPrivateKeyFile'],
  ['resolvConf'],
  ['volumePluginDir'],
];

function siblingsOf(config: JsonObject, data: Readonly<Record<string, string>>): CheckpointFiles {
  const named = PATH_FIELDS.map((path) => path.reduce<unknown>((at, name) => (isJsonObject(at) ? at[name] : undefined), config));
  return Object.fromEntries(
    named.flatMap((name) => (typeof name === 'string' && Object.hasOwn(data, name) ? [[name, data[name] ?? '']] : [])),
  );
}

/** The reason why the kubelet would reject the payload or fail to start with it; null: none. */
function validate(document: SourceDocument, { minor, kubeletMinor = minor, catalogue, cgroupVersion }: PayloadNode): string | null {
  const { problems } = validateKubeletConfiguration(document, {
    minor: kubeletMinor,
    catalogue,
    lenient: true,
    cgroupVersion: cgroupVersion ?? 2,
  });
  const against = problems.filter((problem) => isError(problem) || isStartupRule(problem.code));
  if (against.length === 0) return null;
  const reported = against.slice(0, 3).map(({ path, message }) => (path === undefined ? message : `${path}: ${message}`));
  return `${reported.join('; ')}${against.length > 3 ? ` and ${against.length - 3} more` : ''}`;
}

interface FoundChanges {
  /** Relative to the effective configuration: the changes to apply. */
  readonly ofRunning: readonly ClassifiedChange[];
  /** Relative to the local configuration: the changes to report. */
  readonly ofLocal: readonly ClassifiedChange[];
  /** The effective configuration with the payload. */
  readonly desired: JsonObject;
  /** The effective configuration with its sources. */
  readonly layered: LayeredConfig;
}

function changesOf(configFile: ParsedHostFile, local: ParsedHostFile, node: PayloadNode): FoundChanges {
  const { minor, catalogue, flags } = node;
  const input = { catalogue, minor, flags, dropIns: node.dropIns.map(parseHostFile), dynamicConfig: null };
  const running = layerRunningConfig({ ...input, configFile });
  const desired = running.layered.config;
  const before = layerRunningConfig({ ...input, configFile: local }).layered.config;
  return {
    ofRunning: classifyChanges(node.running ?? before, desired, node),
    ofLocal: classifyChanges(before, desired, node),
    desired,
    layered: running.layered,
  };
}

/**
 * The fields of the ConfigMap without effect, because a flag or a drop-in file of the node sets another value:
 * `maxPods (desired 50, running 33) is overridden by /etc/kubernetes/kubelet.conf.d/50-pods.conf:3`.
 * @param sets leaves that the ConfigMap sets; null: all of the file
 */
function overriddenBy({ layered }: FoundChanges, sets: readonly string[] | null): readonly string[] {
  return [...layered.history].flatMap(([path, steps]) => {
    const last = steps.at(-1);
    const own = steps.findLast(({ origin }) => origin.layer === 'config file');
    if (last === undefined || own === undefined || !isShadow(last.origin) || jsonEqual(own.value, last.value)) return [];
    if (sets !== null && !isSetBy(sets, path)) return [];
    const field = describeOverridden({ path, desired: own.value, running: last.value, isChanged: true });
    return [`${field} ${OVERRIDDEN} ${last.origin.source}`];
  });
}

/** The flag or drop-in file that overrides a field of the file; null: none. */
function shadowsOf({ layered }: RunningConfig): (path: string) => string | null {
  return (path) => {
    const origin = layered.history.get(path)?.at(-1)?.origin;
    return origin !== undefined && isShadow(origin) ? origin.source : null;
  };
}

function isShadow({ layer }: Origin): boolean {
  return layer === 'flag' || layer === 'drop-in';
}

function withoutShadowed(fields: JsonObject, shadowedBy: (path: string) => string | null): JsonObject {
  const shadowed = [...leavesOf(fields).keys()].filter((path) => shadowedBy(path) !== null || isRelativePathField(path, fields));
  // A field is omitted completely when a flag or drop-in file overrides a part of it.
  const names = new Set(shadowed.map((path) => path.split(/[.[]/, 1)[0] as string));
  return Object.fromEntries(Object.entries(fields).filter(([name]) => !names.has(name)));
}

/** The kubelet converts these paths to absolute ones. */
function isRelativePathField(path: string, fields: JsonObject): boolean {
  const value = leavesOf(fields).get(path);
  return PATH_FIELDS.some((field) => field.join('.') === path) && typeof value === 'string' && !value.startsWith('/');
}

function isAllowed(change: ClassifiedChange, { allow, isCordoned }: ChangePolicy): boolean {
  return isAtMost(change.class, allow) || (isCordoned && isAtMost(change.class, 'drain'));
}

function isAtMost(name: LiveChange, most: LiveChange): boolean {
  return worstLiveChange([{ class: name }, { class: most }]) === most;
}

function describeForbidden(changes: readonly ClassifiedChange[], { allow }: ChangePolicy): string {
  const [only, ...more] = changes;
  const reported = more.length === 0 && only !== undefined ? [`${only.path} (${only.class}: ${only.reason})`] : classedFields(changes);
  const worst = worstLiveChange(changes);
  const need = `need ${worst === 'drain' ? 'a drained node or ' : ''}--allow ${worst}`;
  return `the changes of ${reported.join(', ')} ${need}, but the agent of this node runs with --allow ${allow} (see dynamic enable --allow)`;
}

/** The first fields with their classes: `cgroupDriver (unsafe)`. */
function classedFields(changes: readonly ClassifiedChange[]): readonly string[] {
  const shown = changes.slice(0, 5).map(({ path, class: name }) => `${path} (${name})`);
  return changes.length > shown.length ? [...shown, `${changes.length - shown.length} more`] : shown;
}

function describeChange({ path, before, after }: ClassifiedChange): string {
  const text = (value: unknown): string => (value === undefined ? 'unset' : JSON.stringify(value));
  return `${path} from ${text(before)} to ${text(after)}`;
}
