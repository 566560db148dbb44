import type { Arg } from '../../base/arg.ts';
import { isAppError } from '../../base/errors.ts';
import type { Json, JsonObject } from '../../base/json.ts';
import { maskSecrets } from '../../base/text/mask.ts';
import type { FieldChange, Impact } from '../../host/plan/impact.ts';
import { KUBELET_CONF } from '../../kube/well-known.ts';
import type { KubeletReader } from '../catalogue/catalogue.ts';
import { dottedPath, type LayeredConfig, type Origin } from '../layers/layers.ts';
import { classifyChanges } from '../validate/classify-changes.ts';
import { configInputOf, type KubeletSetup } from './kubelet-setup.ts';
import type { RunningConfig, RunningConfigInput } from './running-config.ts';

/** What a kubelet reads at its start before and after a change; null: no kubelet was configured. */
export interface SetupChange {
  readonly before: KubeletSetup | null;
  readonly after: KubeletSetup;
}

/** How the kubelet of a host reads its files. */
export interface KubeletReading extends KubeletReader {
  /** Root directory of the kubelet. */
  readonly rootDir: string;
  /** /etc/kubernetes/kubelet.conf has usable credentials. Absent: unknown. */
  readonly hasIdentity?: boolean;
  /** `layerRunningConfig`, possibly computed once for equal hosts. */
  readonly layersOf: (input: RunningConfigInput) => RunningConfig['layered'];
  /** `configFieldChanges` of results of `layersOf`, possibly computed once for equal hosts. */
  readonly changesOf: (before: JsonObject, after: JsonObject) => readonly FieldChange[];
}

/** A changed field, and the files that set it after and before the change, without duplicates. */
export interface PlacedFieldChange extends FieldChange {
  readonly files: readonly string[];
}

/**
 * Compares the effective configuration of a kubelet before and after a change: defaults, configuration file, drop-in files
 * and the complete command line. Secret values are masked.
 * @returns the changed fields, and the changed flags (also those that are no field, as `--node-ip`); null: a kubelet does not
 *   start with one of the configurations, so the changed fields are unknown
 */
export function kubeletFieldChanges(before: KubeletSetup, after: KubeletSetup, reading: KubeletReading) {
  const { layersOf, changesOf } = reading;
  try {
    const [present, desired] = [before, after].map((setup) => layersOf(runningInput(setup, reading))) as [LayeredConfig, LayeredConfig];
    const originOf = ({ history }: LayeredConfig, path: string): Origin | undefined => history.get(dottedPath(path))?.at(-1)?.origin;
    const fields = changesOf(present.config, desired.config).map((change) => {
      const origins = [originOf(desired, change.field), originOf(present, change.field)];
      const isOfFlag = origins.some((origin) => origin?.layer === 'flag');
      const files = origins.map((origin, i) => fileOf(origin, i === 0 ? after : before)).filter((file) => file !== '');
      return { isOfFlag, change: { ...change, files: [...new Set(files)] } };
    });
    return {
      ofConfig: fields.filter(({ isOfFlag }) => !isOfFlag).map(({ change }) => change),
      ofFlags: [...fields.filter(({ isOfFlag }) => isOfFlag).map(({ change }) => change), ...flagChanges(before, after, reading)],
    };
  } catch (error) {
    if (!isAppError(error)) throw error;
    return null;
  }
}

/** The file of a value: of its layer, or the configuration file if it sets no other value. */
function fileOf(origin: Origin | undefined, { configFile, dropIns }: KubeletSetup): string {
  if (origin?.layer === 'flag') return placeOfFlag(origin.source);
  const paths = dropIns.map(({ path }) => path);
  const found = paths.find((path) => origin?.source === path || origin?.source.startsWith(`${path}:`) === true);
  return found ?? configFile?.path ?? '';
}

/** The file in `--v, KUBELET_EXTRA_ARGS in /etc/default/kubelet`. */
function placeOfFlag(source: string): string {
  return /(?:^|[ ,])(\/.*)$/s.exec(source)?.[1] ?? '';
}

/** The changed fields of two configurations, decoded or plain, with their impact. Secret values are masked. */
export function configFieldChanges(before: JsonObject, after: JsonObject, options: KubeletReader): readonly FieldChange[] {
  return classifyChanges(before, after, options).map(({ path, before: old, after: now, class: impact, reason }) => ({
    field: path,
    before: masked(path, old),
    after: masked(path, now),
    impact,
    ...(impact === 'unsafe' ? { why: reason } : {}),
  }));
}

/**
 * The effective configuration of a kubelet with these files and flags.
 * @returns null: no kubelet starts with them
 */
export function effectiveOf(setup: KubeletSetup, reading: KubeletReading): JsonObject | null {
  try {
    return reading.layersOf(runningInput(setup, reading)).config;
  } catch (error) {
    if (!isAppError(error)) throw error;
    return null;
  }
}

/** A setup as input of `layerRunningConfig`: with the flags that are fields, because the others differ from host to host. */
export function runningInput(setup: KubeletSetup, reading: KubeletReader): RunningConfigInput {
  const input = configInputOf(setup, reading);
  return { ...input, flags: input.flags.filter(({ name }) => isFieldFlag(name, reading) || name === 'root-dir') };
}

function isFieldFlag(name: string, { catalogue, minor }: KubeletReader): boolean {
  return (catalogue.flag(name, minor)?.field ?? null) !== null;
}

/** Effects of flags without a field. Others need only a restart of the kubelet. */
const FLAG_IMPACTS: Readonly<Record<string, Impact>> = {
  // A kubelet with valid credentials does not read the file (1.36 pkg/kubelet/certificate/bootstrap LoadClientConfig).
  'bootstrap-kubeconfig': 'unsafe',
  'cert-dir': 'unsafe',
  'cloud-config': 'unsafe',
  'cloud-provider': 'unsafe',
  'cni-bin-dir': 'new-pods-only',
  'cni-conf-dir': 'new-pods-only',
  // The fields of these files are compared.
  config: 'safe',
  'config-dir': 'safe',
  'container-runtime': 'unsafe',
  'docker-endpoint': 'unsafe',
  'hostname-override': 'unsafe',
  'image-credential-provider-bin-dir': 'new-pods-only',
  'image-credential-provider-config': 'new-pods-only',
  kubeconfig: 'unsafe',
  'network-plugin': 'drain',
  'network-plugin-mtu': 'new-pods-only',
  // Pods in the network of the host, and routes to the node, keep the previous address.
  'node-ip': 'drain',
  'non-masquerade-cidr': 'new-pods-only',
  'root-dir': 'unsafe',
  'seccomp-profile-root': 'new-pods-only',
};

function flagChanges(before: KubeletSetup, after: KubeletSetup, reading: KubeletReading): readonly PlacedFieldChange[] {
  // The last value of each flag wins.
  const last = ({ flags }: KubeletSetup) => new Map(flags.map((flag) => [flag.name, flag]));
  const [old, now] = [last(before), last(after)];
  return [...new Set([...old.keys(), ...now.keys()])]
    .filter((name) => !isFieldFlag(name, reading) && old.get(name)?.value !== now.get(name)?.value)
    .map((name) => {
      const [previous, next] = [old.get(name), now.get(name)];
      // A removed flag that this kubelet does not know had no effect on it.
      const isKnown = reading.catalogue.flag(name, reading.minor) !== null;
      const isUnused = name === 'bootstrap-kubeconfig' && reading.hasIdentity === true && now.get('kubeconfig')?.value === KUBELET_CONF;
      const impact = isKnown && !isUnused ? (FLAG_IMPACTS[name] ?? 'safe') : 'safe';
      const files = [next, previous].map((flag) => placeOfFlag(flag?.source ?? '')).filter((file) => file !== '');
      const values = { before: masked(name, previous?.value), after: masked(name, next?.value) };
      return { field: `--${name}`, ...values, impact, files: [...new Set(files)] };
    });
}

/** HTTP headers may authenticate the kubelet. */
const CONFIDENTIAL = /^staticPodURLHeader|^manifest-url-header$/;

/** Whether the value of a flag can authenticate someone. */
export function isConfidentialFlag({ name, value }: Arg): boolean {
  return masked(name, value) !== value;
}

/** The value of a field or a flag without credentials, for messages. */
export function masked(path: string, value: Json | undefined): Json {
  if (value === undefined) return null;
  if (CONFIDENTIAL.test(path)) return '[secret]';
  return typeof value === 'string' ? maskSecrets(value).replace(/(:\/\/)[^/@\s]*@/g, '$1[secret]@') : value;
}
