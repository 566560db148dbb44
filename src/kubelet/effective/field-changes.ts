import { isAppError } from '../../base/errors.ts';
import type { Json, JsonObject } from '../../base/json.ts';
import { maskSecrets } from '../../base/text/mask.ts';
import type { FieldChange, Impact } from '../../host/plan/impact.ts';
import { FLAGS_ENV, KUBELET_CONFIG_FILE } from '../../kube/well-known.ts';
import type { Catalogue, Minor } from '../catalogue.ts';
import { parseCommandLine } from '../flags/command-line.ts';
import { readFlagsEnv } from '../flags-env.ts';
import { type ClassifyOptions, classifyChanges } from '../validate/classify-changes.ts';
import type { HostText, ParsedHostFile, PlacedFlag, RunningConfig, RunningConfigInput } from './running-config.ts';

/** The texts of kubeadm's two files for a kubelet, and of the drop-in files that the kubelet merges over config.yaml. */
export interface KubeletTexts {
  readonly configYaml: string;
  readonly flagsEnv: string;
  /** Drop-in files of `--config-dir`, in merge order. */
  readonly dropIns: readonly (HostText | ParsedHostFile)[];
}

/** The drop-in files before and after a change, in merge order. */
export interface DropInChange {
  readonly before: KubeletTexts['dropIns'];
  readonly after: KubeletTexts['dropIns'];
}

/** How the kubelet of a host reads its files. */
export interface KubeletReading {
  readonly catalogue: Catalogue;
  readonly minor: Minor;
  /** Words of the kubelet's unit after those of kubeadm-flags.env. */
  readonly unitArgs: readonly string[];
  /** Root directory of the kubelet. */
  readonly rootDir: string;
  /** `layerRunningConfig`, possibly computed once for equal hosts. */
  readonly layersOf: (input: RunningConfigInput) => RunningConfig['layered'];
  /** `configFieldChanges` of results of `layersOf`, possibly computed once for equal hosts. */
  readonly changesOf: (before: JsonObject, after: JsonObject) => readonly FieldChange[];
}

/** The changed fields of a kubelet, by the file that changes them. */
export interface KubeletFieldChanges {
  readonly ofConfig: readonly PlacedFieldChange[];
  /** Also flags that are no field, as `--node-ip`. */
  readonly ofFlags: readonly FieldChange[];
}

/** A changed field, and the files that set it after and before the change, without duplicates. */
export interface PlacedFieldChange extends FieldChange {
  readonly files: readonly string[];
}

/**
 * Compares the effective configuration of a kubelet before and after a change of its files: defaults, config.yaml,
 * drop-in files and flags. Secret values are masked.
 * @returns null: a kubelet does not start with one of the configurations, so the changed fields are unknown
 */
export function kubeletFieldChanges(before: KubeletTexts, after: KubeletTexts, reading: KubeletReading): KubeletFieldChanges | null {
  const { layersOf, changesOf } = reading;
  const sides = [before, after].map((texts) => runningInput(texts, reading));
  try {
    const [present, desired] = sides.map(layersOf) as [RunningConfig['layered'], RunningConfig['layered']];
    const isOfFlag = (path: string): boolean =>
      [present, desired].some(({ history }) => history.get(dotted(path))?.at(-1)?.origin.layer === 'flag');
    const filesOf = (path: string): readonly string[] => {
      const sources = [desired, present].map(({ history }) => history.get(dotted(path))?.at(-1)?.origin.source ?? '');
      const paths = [...after.dropIns, ...before.dropIns].map(({ path: file }) => file);
      const found = sources.map((source) => paths.find((file) => source === file || source.startsWith(`${file}:`)) ?? KUBELET_CONFIG_FILE);
      return [...new Set(found)];
    };
    const changes = changesOf(present.config, desired.config);
    const fields = changes.map((change) => ({ ofFlag: isOfFlag(change.field), change }));
    return {
      ofConfig: fields.filter(({ ofFlag }) => !ofFlag).map(({ change }) => ({ ...change, files: filesOf(change.field) })),
      ofFlags: [...fields.filter(({ ofFlag }) => ofFlag).map(({ change }) => change), ...flagChanges(before, after, reading)],
    };
  } catch (error) {
    if (!isAppError(error)) throw error;
    return null;
  }
}

/** The changed fields of two configurations, decoded or plain, with their impact. Secret values are masked. */
export function configFieldChanges(before: JsonObject, after: JsonObject, options: ClassifyOptions): readonly FieldChange[] {
  return classifyChanges(before, after, options).map(({ path, before: old, after: now, class: impact, reason }) => ({
    field: path,
    before: masked(path, old),
    after: masked(path, now),
    impact,
    ...(impact === 'unsafe' ? { why: reason } : {}),
  }));
}

/**
 * The effective configuration of a kubelet with these files.
 * @returns null: no kubelet starts with them
 */
export function effectiveOf(texts: KubeletTexts, reading: KubeletReading): JsonObject | null {
  try {
    return reading.layersOf(runningInput(texts, reading)).config;
  } catch (error) {
    if (!isAppError(error)) throw error;
    return null;
  }
}

/** The files of a kubelet as input of `layerRunningConfig`: with the flags that are fields. */
export function runningInput(
  { configYaml, flagsEnv, dropIns }: KubeletTexts,
  reading: Omit<KubeletReading, 'layersOf' | 'changesOf' | 'rootDir'>,
): RunningConfigInput {
  const { catalogue, minor } = reading;
  // The other flags differ from host to host.
  const flags = flagsOf(flagsEnv, reading).filter(({ name }) => isFieldFlag(name, reading) || name === 'root-dir');
  return { catalogue, minor, configFile: { path: KUBELET_CONFIG_FILE, text: configYaml }, dynamicConfig: null, dropIns, flags };
}

type FlagReading = Pick<KubeletReading, 'catalogue' | 'minor' | 'unitArgs'>;

/** All flags of kubeadm-flags.env and of the unit. */
export function flagsOf(flagsEnv: string, { catalogue, minor, unitArgs }: FlagReading): readonly PlacedFlag[] {
  const { flags } = parseCommandLine([...readFlagsEnv(flagsEnv), ...unitArgs], { catalogue, minor });
  return flags.map(({ name, value }) => ({ name, value, source: FLAGS_ENV }));
}

function isFieldFlag(name: string, { catalogue, minor }: FlagReading): boolean {
  return (catalogue.flag(name, minor)?.field ?? null) !== null;
}

/** Effects of flags without a field. Others need only a restart of the kubelet. */
const FLAG_IMPACTS: Readonly<Record<string, Impact>> = {
  'bootstrap-kubeconfig': 'unsafe',
  'cert-dir': 'unsafe',
  'cloud-config': 'unsafe',
  'cloud-provider': 'unsafe',
  'cni-bin-dir': 'new-pods-only',
  'cni-conf-dir': 'new-pods-only',
  config: 'unsafe',
  // The fields of its drop-in files are compared.
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

function flagChanges(before: KubeletTexts, after: KubeletTexts, reading: FlagReading): readonly FieldChange[] {
  const [old, now] = [before, after].map(({ flagsEnv }) => valuesOf(flagsOf(flagsEnv, reading))) as [Values, Values];
  return [...new Set([...old.keys(), ...now.keys()])]
    .filter((name) => !isFieldFlag(name, reading) && old.get(name) !== now.get(name))
    .map((name) => {
      // A removed flag that this kubelet does not know had no effect on it.
      const isKnown = reading.catalogue.flag(name, reading.minor) !== null;
      const impact = isKnown ? (FLAG_IMPACTS[name] ?? 'safe') : 'safe';
      return { field: `--${name}`, before: masked(name, old.get(name)), after: masked(name, now.get(name)), impact };
    });
}

type Values = ReadonlyMap<string, string>;

/** The last value of each flag, which wins. */
function valuesOf(flags: readonly PlacedFlag[]): Values {
  return new Map(flags.map(({ name, value }) => [name, value]));
}

/** HTTP headers may authenticate the kubelet. */
const CONFIDENTIAL = /^staticPodURLHeader|^manifest-url-header$/;

function masked(path: string, value: Json | undefined): Json {
  if (value === undefined) return null;
  if (CONFIDENTIAL.test(path)) return '[secret]';
  return typeof value === 'string' ? maskSecrets(value).replace(/(:\/\/)[^/@\s]*@/g, '$1[secret]@') : value;
}

/** Histories name members of maps with dots. */
function dotted(path: string): string {
  return path.replaceAll('[', '.').replaceAll(']', '');
}
