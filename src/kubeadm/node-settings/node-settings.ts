import * as z from 'zod';
import type { Arg } from '../../base/arg.ts';
import { AppError, isAppError, type Problem } from '../../base/errors.ts';
import type { Json, JsonObject } from '../../base/json.ts';
import { parseSource, sourceToJson } from '../../codec/source.ts';
import { encodeYaml, type YamlValue } from '../../codec/yaml-encode.ts';
import type { PlacedFlag } from '../../kubelet/effective/running-config.ts';
import { taint } from '../config/schema-parts.ts';

/**
 * Stores the settings declared for a node on its host. kubeadm does not know the file; `reset` of both
 * kubeletadm and kubeadm empties the directory.
 */
export const NODE_SETTINGS_PATH = '/var/lib/kubelet/kubeletadm-node.yaml';

const API_VERSION = 'kubeletadm.dev/v1alpha1';
const KIND = 'NodeSettings';

const json = z.json() as unknown as z.ZodType<Json>;
const optional = z.exactOptional;
const texts = z.array(z.string()).readonly();
const ARGS = z.array(z.strictObject({ name: z.string(), value: z.string() }).readonly()).readonly();
const SCHEMA = z.strictObject({
  apiVersion: z.literal(API_VERSION),
  kind: z.literal(KIND),
  nodeRegistration: z
    .strictObject({
      name: optional(z.string()),
      criSocket: optional(z.string()),
      taints: optional(z.array(taint).readonly()),
      kubeletExtraArgs: optional(ARGS),
      /** Flags of the host's own unit, kept when kubeadm's unit replaced it. Absent: none. */
      keptFlags: optional(ARGS),
    })
    .readonly(),
  overlays: z
    .array(
      z
        .strictObject({
          /** Name of its file. */
          source: z.string(),
          content: z.record(z.string(), json) as unknown as z.ZodType<JsonObject>,
          /** Its owner, which names its drop-in file: `baseline`, `group edge`. */
          layer: z.string().optional(),
        })
        .readonly(),
    )
    .readonly(),
  /** The layers are drop-in files of `--config-dir`. Absent: they are merged into config.yaml. */
  configDir: z.boolean().optional(),
  /** Per-host flags such as `--resolv-conf`. */
  declared: z.array(z.strictObject({ path: texts, value: json, source: z.string() }).readonly()).readonly(),
  /** `--set` values as given. */
  settings: texts,
  patches: z.array(z.strictObject({ source: z.string(), type: z.enum(['json', 'merge', 'strategic']), patch: json }).readonly()).readonly(),
});

/**
 * The settings declared for one node by `init`, `join` or `upgrade node`: enough to render its files again. No secrets.
 */
export type NodeSettings = Readonly<Omit<z.output<typeof SCHEMA>, 'apiVersion' | 'kind'>>;

/** No settings were declared or stored. */
export const NO_SETTINGS: NodeSettings = { nodeRegistration: {}, overlays: [], declared: [], settings: [], patches: [] };

/** Encodes node settings. Equal settings give identical bytes. */
export function encodeNodeSettings({ nodeRegistration, overlays, declared, settings, patches, configDir }: NodeSettings): string {
  const { name, criSocket, taints, kubeletExtraArgs, keptFlags } = nodeRegistration;
  const args = (list: readonly Arg[]) => list.map((arg) => ({ name: arg.name, value: arg.value }));
  const content = {
    apiVersion: API_VERSION,
    ...(configDir === true ? { configDir } : {}),
    declared: declared.map(({ path, value, source }) => ({ path, value, source })),
    kind: KIND,
    nodeRegistration: {
      ...(name === undefined ? {} : { name }),
      ...(criSocket === undefined ? {} : { criSocket }),
      ...(taints === undefined ? {} : { taints: taints.map((taint) => ({ ...taint })) }),
      ...(keptFlags === undefined ? {} : { keptFlags: args(keptFlags) }),
      ...(kubeletExtraArgs === undefined ? {} : { kubeletExtraArgs: args(kubeletExtraArgs) }),
    },
    overlays: overlays.map(({ source, content, layer }) => ({ source, content, ...(layer === undefined ? {} : { layer }) })),
    patches: patches.map(({ source, type, patch }) => ({ source, type, patch })),
    settings,
  };
  return encodeYaml(content as unknown as YamlValue);
}

/**
 * Decodes the node settings file.
 * @throws AppError NODE_MEMORY_INVALID (exit code 3: nothing was changed) with all errors
 */
export function decodeNodeSettings(text: string): NodeSettings {
  const { documents, problems } = parseSource(text, NODE_SETTINGS_PATH);
  const root = documents[0]?.root ?? null;
  if (problems.length > 0 || root === null)
    throw invalid(problems.length > 0 ? problems.map(({ message }) => message) : ['the file is empty']);
  const read = SCHEMA.safeParse(sourceToJson(root));
  if (!read.success) throw invalid(read.error.issues.map(describeIssue));
  const { apiVersion: _, kind: __, ...nodeSettings } = read.data;
  return nodeSettings;
}

/** The kept flags in a settings file; none in an invalid file, which the run writes again. */
export function readKeptFlags(text: string): readonly PlacedFlag[] {
  try {
    const { keptFlags = [] } = decodeNodeSettings(text).nodeRegistration;
    return keptFlags.map((arg) => ({ ...arg, source: NODE_SETTINGS_PATH, file: NODE_SETTINGS_PATH }));
  } catch (error) {
    if (isAppError(error, 'NODE_MEMORY_INVALID')) return [];
    throw error;
  }
}

function describeIssue({ path, message }: z.core.$ZodIssue): string {
  return path.length === 0 ? message : `${path.join('.')}: ${message}`;
}

function invalid(reasons: readonly string[]): AppError {
  const hint = 'Delete the file, then rerun the command with --overlay, --patches and --set of this node';
  const problems = reasons.map((why): Problem => ({ code: 'NODE_MEMORY_INVALID', message: `${NODE_SETTINGS_PATH}: ${why}`, hint }));
  return new AppError(problems, { exitCode: 3 });
}
