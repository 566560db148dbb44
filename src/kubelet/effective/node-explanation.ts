import { isJsonObject, type Json, type JsonObject, jsonEqual } from '../../base/json.ts';
import { inlineValue } from '../../codec/inline-value.ts';
import { parseSource, sourceToJson } from '../../codec/source.ts';
import type { UnitState } from '../../host/facts/unit.ts';
import { formatMinor, type KubeletReader, type LiveChange, type Minor } from '../catalogue/catalogue.ts';
import { dottedPath, type FieldStep, type LayeredConfig, type LayerName, leavesOf } from '../layers/layers.ts';
import { isSetBy } from '../layers/overridden-fields.ts';
import type { CheckpointManifest } from '../node-agent/layout.ts';
import { classifyChanges } from '../validate/classify-changes.ts';
import { masked } from './field-changes.ts';
import type { NodeSource } from './node-source.ts';
import type { HostText } from './running-config.ts';

/** The value of a field in one layer. */
export interface LayerValue {
  readonly layer: LayerName | 'configz';
  /** `/var/lib/kubelet/config.yaml:12`, `--max-pods, KUBELET_EXTRA_ARGS in /etc/default/kubelet`. */
  readonly source: string;
  /** Omitted: the layer removed the field. */
  readonly value?: Json;
}

/** The effective value of a field with its origin. */
export interface ExplainedField extends LayerValue {
  readonly path: string;
  /** Overridden values, the last one first. */
  readonly lost: readonly LayerValue[];
}

/** A difference between disk, running kubelet and configz. */
export interface ConfigDrift {
  readonly code:
    | 'NOT_RESTARTED'
    | 'NEEDS_RELOAD'
    | 'VERSION_REPLACED'
    | 'START_WOULD_FAIL'
    | 'KUBELET_UNHEALTHY'
    | 'CONFIGZ_DIFFERS'
    | 'INSTANCE_CONFIG_DIFFERS'
    | 'PASSED_OVER'
    | 'SHUTDOWN_NOT_DELAYED';
  readonly message: string;
  readonly field?: string;
  readonly liveChange?: LiveChange;
}

export interface NodeExplanation {
  readonly node: string;
  readonly kubernetesVersion: string;
  /** Null: not running, or only the API server was queried. */
  readonly process: { readonly pid: number; readonly startedAt: string | null } | null;
  /** `ok`, `inactive`, `crashed, 5 restarts`, ...; null: only the API server was queried. */
  readonly health: string | null;
  /** Null: no kubelet runs. `assignedAt`: by an administrator, in UTC (RFC 3339); null: unknown, or no ConfigMap. */
  readonly source: (NodeSource & { readonly assignedAt: string | null }) | null;
  readonly fields: readonly ExplainedField[];
  /** `field`: the corresponding one; null: none. */
  readonly flags: readonly { readonly name: string; readonly value: string; readonly source: string; readonly field: string | null }[];
  readonly disagreements: readonly ConfigDrift[];
}

/** The fields of a layered configuration with their history. */
export function explainLayers({ config, history }: LayeredConfig): readonly ExplainedField[] {
  return [...leavesOf(config).keys()].sort().flatMap((path): ExplainedField[] => {
    const steps = history.get(path) ?? [];
    const last = steps.at(-1);
    if (last === undefined) return [];
    return [{ path, ...layerValueOf(last), lost: steps.slice(0, -1).reverse().map(layerValueOf) }];
  });
}

function layerValueOf({ origin, value }: FieldStep): LayerValue {
  return { layer: origin.layer, source: origin.source, ...(value === undefined ? {} : { value }) };
}

/** Selects a field and its members; `[x]` and `.x` are equivalent. Empty if not found. */
export function selectFields(fields: readonly ExplainedField[], name: string): readonly ExplainedField[] {
  const desired = dottedPath(name);
  return fields.filter(({ path }) => dottedPath(path) === desired || dottedPath(path).startsWith(`${desired}.`));
}

/** Input of the comparison of a host's disk with its running kubelet. */
export interface DriftInput {
  readonly flags: readonly { readonly name: string; readonly value: string }[];
  readonly diskFlags: readonly { readonly name: string; readonly value: string; readonly source: string }[] | null;
  readonly files: readonly { readonly path: string; readonly modifiedAt: number | null }[];
  readonly unit: Pick<UnitState, 'startedAt' | 'needsReload'> | null;
  readonly runningVersion: string | null;
  readonly diskVersion: string | null;
  /** Whether no reason is known for which the next start would fail: otherwise a restart is not advised. */
  readonly startsNext: boolean;
}

/** Differences between the disk and the running kubelet. */
export function findDrift(input: DriftInput): readonly ConfigDrift[] {
  const { flags, diskFlags, files, unit, runningVersion, diskVersion, startsNext } = input;
  const apply = startsNext ? 'restart the kubelet to apply the change' : 'not in force';
  const found: ConfigDrift[] = [];
  if (runningVersion !== null && diskVersion !== null && runningVersion !== diskVersion) {
    const message = `the running kubelet is ${runningVersion}, the program on disk is ${diskVersion}${startsNext ? ': restart the kubelet to run the new program' : ''}`;
    found.push({ code: 'VERSION_REPLACED', message });
  }
  const startedAt = unit?.startedAt ?? null;
  for (const { path, modifiedAt } of files) {
    if (startedAt !== null && modifiedAt !== null && modifiedAt > startedAt)
      found.push({ code: 'NOT_RESTARTED', message: `${path} was edited after the kubelet started, which may have other values: ${apply}` });
  }
  if (diskFlags !== null) found.push(...flagDrift(flags, diskFlags, apply));
  if (unit?.needsReload === true)
    found.push({
      code: 'NEEDS_RELOAD',
      message: 'the unit files of the kubelet were edited after systemd read them: run systemctl daemon-reload',
    });
  return found;
}

function flagDrift(flags: DriftInput['flags'], diskFlags: NonNullable<DriftInput['diskFlags']>, apply: string): readonly ConfigDrift[] {
  const valuesOf = (list: DriftInput['flags'], name: string): string =>
    JSON.stringify(list.filter((flag) => flag.name === name).map(({ value }) => value));
  const names = [...new Set([...diskFlags, ...flags].map(({ name }) => name))];
  return names
    .filter((name) => valuesOf(flags, name) !== valuesOf(diskFlags, name))
    .map((name) => {
      const [running, disk] = [flags.findLast((flag) => flag.name === name), diskFlags.findLast((flag) => flag.name === name)];
      const now =
        running === undefined ? `the running kubelet has no --${name}` : `the running kubelet has --${name}=${masked(name, running.value)}`;
      const next =
        disk === undefined
          ? 'but the unit no longer sets this flag'
          : `but the unit sets --${name}=${masked(name, disk.value)} (${disk.source})`;
      return { code: 'NOT_RESTARTED' as const, message: `${now}, ${next}: ${apply}` };
    });
}

/** Differences between configz and the configuration on disk. */
export function compareWithConfigz(configz: JsonObject, layered: LayeredConfig, options: KubeletReader): readonly ConfigDrift[] {
  // The effect of this flag is that of the field, but configz does not show it. HTTP headers are masked in configz.
  const isHidden = (path: string): boolean =>
    path === 'seccompDefault' && layered.history.get(path)?.some(({ origin }) => origin.layer === 'flag') === true;
  const changes = classifyChanges(configz, layered.config, options).filter(
    ({ path }) => !isHidden(path) && !path.startsWith('staticPodURLHeader'),
  );
  return changes.map((change) => ({
    code: 'CONFIGZ_DIFFERS',
    field: change.path,
    liveChange: change.class,
    message: `${change.path}: the running kubelet has ${inlineValue(change.before)}, the files on disk set ${inlineValue(change.after)}`,
  }));
}

/**
 * Differences between kubeadm's per-host file and the configuration file: the kubelet ignores the former, but
 * kubeadm's next upgrade applies it.
 */
export function compareWithInstanceConfig(file: HostText, { history }: LayeredConfig): readonly ConfigDrift[] {
  const root = parseSource(file.text, file.path).documents[0]?.root ?? null;
  const reported = root === null ? null : sourceToJson(root);
  return [...leavesOf(isJsonObject(reported) ? reported : {})].flatMap(([path, value]): ConfigDrift[] => {
    const written = history.get(path)?.findLast(({ origin }) => origin.layer === 'config file');
    if (jsonEqual(written?.value, value)) return [];
    const message = `${path}: ${file.path} sets ${inlineValue(value)}, but the configuration file has ${inlineValue(written?.value)}. The next upgrade with kubeadm would write ${inlineValue(value)}`;
    return [{ code: 'INSTANCE_CONFIG_DIFFERS', field: path, message }];
  });
}

/**
 * The fields of configz. Their origin is known only as far as they equal the default or the ConfigMap of the Node.
 * @param configMap the configuration in that ConfigMap; null: it could not be read
 */
export function explainConfigz(
  configz: JsonObject,
  {
    defaults,
    minor,
    source,
    configMap,
  }: { readonly defaults: JsonObject; readonly minor: Minor; readonly source: NodeSource | null; readonly configMap: JsonObject | null },
): readonly ExplainedField[] {
  const name = source?.kind === 'config-map' ? `ConfigMap ${source.source.namespace}/${source.source.name}` : null;
  const usual = leavesOf(defaults);
  const assigned = leavesOf(configMap ?? {});
  const sourceOf = (path: string, value: Json): string => {
    const host = 'a file or a flag of the host';
    if (name === null || (configMap !== null && !assigned.has(path))) return host;
    return jsonEqual(assigned.get(path), value) ? name : `${name}, or ${host}`;
  };
  const leaves = [...leavesOf(configz)].filter(([path]) => path !== 'apiVersion' && path !== 'kind');
  return leaves
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([path, value]) => {
      const isDefault = !assigned.has(path) && JSON.stringify(usual.get(path)) === JSON.stringify(value);
      const word: LayerValue = isDefault
        ? { layer: 'kubelet default', source: `kubelet ${formatMinor(minor)}`, value }
        : { layer: 'configz', source: sourceOf(path, value), value };
      return { path, ...word, lost: [] };
    });
}

/**
 * Names the ConfigMap instead of its checkpoint, whose path is a hash. A field that an overlay leaves unset is
 * attributed to the local configuration.
 * @param checkpoint its path, and the name of the ConfigMap: `ConfigMap kube-system/node-config`
 * @param manifest of the checkpoint; `sets` null: the ConfigMap is complete. Undefined members: unknown
 * @param localConfig the file that has the other fields
 */
export function attributeToConfigMap(
  explanation: NodeExplanation,
  { path, name }: { readonly path: string; readonly name: string },
  { sets, places = {} }: { readonly [K in 'sets' | 'places']?: CheckpointManifest[K] | undefined },
  localConfig: string,
): NodeExplanation {
  const placeOf = (field: string): string => (Object.hasOwn(places, field) ? `${name} ${places[field]}` : name);
  const named = <T extends LayerValue>(field: string, word: T): T => {
    if (!word.source.includes(path)) return word;
    if (word.layer === 'kubelet default') return { ...word, source: word.source.replace(path, name) };
    return sets == null || isSetBy(sets, field)
      ? { ...word, layer: 'dynamic config', source: placeOf(field) }
      : { ...word, layer: 'config file', source: localConfig };
  };
  return {
    ...explanation,
    fields: explanation.fields.map((field) => ({ ...named(field.path, field), lost: field.lost.map((word) => named(field.path, word)) })),
    flags: explanation.flags.filter((flag) => flag.name !== 'config' || flag.value !== path),
    disagreements: explanation.disagreements.map((one) => ({
      ...one,
      message: one.message.replaceAll(path, `the checkpoint of ${name}`),
    })),
  };
}
