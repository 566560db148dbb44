import * as z from 'zod';
import { AppError } from '../base/errors.ts';
import type { Json, JsonObject } from '../base/json.ts';
import { documentOfValue } from '../codec/document-of-value.ts';
import { digestOf } from '../codec/json-text.ts';
import { sourceToJson } from '../codec/source.ts';
import { type HostHooks, NO_HOOKS } from '../host/hooks.ts';
import { type HostPreparation, isUndeclared, NO_PREPARATION } from '../host/install/model.ts';
import { type HostPlan, impactOfPlan } from '../host/plan/document.ts';
import { type HostChanges, sharedChangesOf } from '../host/plan/fold.ts';
import { highestImpact, IMPACTS, type Impact } from '../host/plan/impact.ts';
import { diffEqualTextsOnce } from '../host/plan/text-diff.ts';
import type { NodeRegistration } from '../kubeadm/config/model.ts';
import type { NodeOverlay } from '../kubeadm/render/config-drop-ins.ts';
import type { FieldSetting } from '../kubelet/setting.ts';
import type { FleetCluster, ResolvedHost, ResolvedSsh } from './model.ts';
import { type Operations, operationsOf } from './operations.ts';
import { FLEET_KIND } from './schema.ts';

const API_VERSION = 'kubeletadm.dev/v1alpha1';
const KIND = 'FleetPlan';

/** A host with all settings of its node, so that a saved plan needs no fleet file. */
export type PlannedHost = Pick<
  ResolvedHost,
  'name' | 'role' | 'groups' | 'ssh' | 'nodeRegistration' | 'declared' | 'kubeletConfigDir' | 'preparation' | 'hooks'
> & {
  readonly overlays: readonly { readonly document: NodeOverlay }[];
};

/** Result of planning a host. */
export interface PlanOutcome {
  readonly status: 'pending' | 'unchanged' | 'refused' | 'unreachable' | 'interrupted';
  readonly plan: HostPlan | null;
  readonly problems: readonly string[];
}

export interface PlanContext {
  readonly fleet: { readonly file: string; readonly directory: string; readonly name: string | null };
  readonly cluster: FleetCluster;
  /** URL of the API server. */
  readonly server: string;
  /** Command-line flags that affect the operations. */
  readonly takeOver: boolean;
  /** Absent: a host whose change would end pods is refused. */
  readonly allowPodLoss?: boolean;
  /** The most disruptive impact that the plan was permitted to have. Absent: `DEFAULT_ALLOWED`. */
  readonly allow?: Impact;
  readonly ignorePreflightErrors: readonly string[];
  /** The hosts that are changed first; empty: none. Absent: apply chooses them. */
  readonly canary?: readonly string[];
}

/** When a plan was made, and how long it may be applied. */
export interface PlanLifetime {
  readonly createdAt: Date;
  readonly validForMs: number;
}

/** A plan in its saved and printed form: a stable interface without secrets. */
export interface SavedPlan extends PlanContext {
  readonly apiVersion: typeof API_VERSION;
  readonly kind: typeof KIND;
  /** Digest of everything except `validity`: equal plans have equal digests, and an edited plan is refused. */
  readonly id: string;
  readonly validity: PlanValidity;
  /** Shared content of hosts is stored once. */
  readonly changes: Readonly<Record<string, HostChanges>>;
  readonly overlays: Readonly<Record<string, PlannedOverlay>>;
  readonly hosts: readonly SavedHost[];
  /** The highest impact of all hosts; null: no running kubelet is changed. */
  readonly highestImpact?: Impact | null;
}

/** A layer; `layer` names its owner for drop-in files of `--config-dir`. */
interface PlannedOverlay {
  readonly source: string;
  readonly content: JsonObject;
  readonly layer?: string | undefined;
}

export interface PlanValidity {
  /** RFC 3339. */
  readonly createdAt: string;
  /** RFC 3339: from then on the plan is refused. */
  readonly expiresAt: string;
  /** Digest of the plan's `id` and both times: an edited time is refused. */
  readonly digest: string;
}

export interface SavedHost {
  readonly name: string;
  readonly status: PlanOutcome['status'];
  readonly role: ResolvedHost['role'];
  readonly groups: readonly string[];
  readonly ssh: ResolvedSsh;
  readonly nodeRegistration: NodeRegistration;
  readonly declared: readonly FieldSetting[];
  readonly kubeletConfigDir?: true;
  /** Absent: nothing declared. */
  readonly preparation?: HostPreparation;
  /** Absent: none. */
  readonly hooks?: HostHooks;
  /** Keys of `overlays`. */
  readonly overlays: readonly string[];
  /** Key of `changes`; host-specific parts are placeholders such as `<node>`. */
  readonly changes?: string;
  /** The exact operations; null: not determined. */
  readonly operations: Operations | null;
  /** Null: no running kubelet is changed. */
  readonly highestImpact?: Impact | null;
  readonly problems?: readonly string[];
}

/** Default time for which a plan may be applied. */
export const PLAN_VALID_FOR_MS = 24 * 3_600_000;
/** The same for a signed plan, whose file is a permission to change the hosts. */
export const SIGNED_PLAN_VALID_FOR_MS = 3_600_000;

/** Builds the plan to save. Equal hosts, facts, files and times give identical bytes. */
export function savePlan(
  context: PlanContext,
  hosts: readonly (readonly [PlannedHost, PlanOutcome])[],
  { createdAt, validForMs }: PlanLifetime,
): SavedPlan {
  const changes = new Map<string, HostChanges>();
  const overlays = new Map<string, PlannedOverlay>();
  const known = { split: new Map<NodeOverlay, string>(), merged: new Map<NodeOverlay, string>() };
  const keyOfOverlay = (document: NodeOverlay, isSplit: boolean): string => {
    const keys = known[isSplit ? 'split' : 'merged'];
    const key = keys.get(document);
    if (key !== undefined) return key;
    const content = (document.root === null ? {} : sourceToJson(document.root)) as JsonObject;
    const { file: source, layer } = document;
    const overlay = { source, content, ...(isSplit && layer !== undefined ? { layer } : {}) };
    const made = digestOf(overlay);
    keys.set(document, made);
    overlays.set(made, overlay);
    return made;
  };
  const diffTexts = diffEqualTextsOnce();
  const digests = new Map<string, string>();
  const keyOfChanges = (shared: string): string => {
    const key = digests.get(shared);
    if (key !== undefined) return key;
    const made = digestOf(shared);
    digests.set(shared, made);
    changes.set(made, JSON.parse(shared) as HostChanges);
    return made;
  };
  const saved = hosts.map(([host, { status, plan, problems }]): SavedHost => {
    const { name, role, groups, ssh, nodeRegistration, declared, kubeletConfigDir, preparation, hooks } = host;
    const key = status === 'pending' && plan !== null ? keyOfChanges(sharedChangesOf(plan, diffTexts)) : null;
    return {
      name,
      status,
      role,
      groups,
      ssh,
      nodeRegistration,
      declared,
      ...(kubeletConfigDir === true ? { kubeletConfigDir } : {}),
      ...(isUndeclared(preparation) ? {} : { preparation }),
      ...(hooks.beforeChange === null && hooks.afterChange === null ? {} : { hooks }),
      overlays: host.overlays.map(({ document }) => keyOfOverlay(document, kubeletConfigDir === true)),
      ...(key === null ? {} : { changes: key }),
      operations: plan === null ? null : operationsOf(plan),
      highestImpact: plan === null ? null : impactOfPlan(plan),
      ...(problems.length === 0 ? {} : { problems }),
    };
  });
  const body = {
    apiVersion: API_VERSION,
    kind: KIND,
    ...context,
    changes: Object.fromEntries(changes),
    overlays: Object.fromEntries(overlays),
    hosts: saved,
    highestImpact: highestImpact(saved.map((host) => host.highestImpact)),
  } as const;
  const id = digestOf(body);
  const times = { createdAt: createdAt.toISOString(), expiresAt: new Date(createdAt.getTime() + validForMs).toISOString() };
  return { id, validity: { ...times, digest: digestOf({ id, ...times }) }, ...body };
}

/** Whether the time until which a plan may be applied is over. */
export function isExpired({ validity }: Pick<SavedPlan, 'validity'>, now: Date): boolean {
  return now.getTime() >= Date.parse(validity.expiresAt);
}

const text = z.string();
const texts = z.array(text);
const json = z.json() as unknown as z.ZodType<Json>;
const object = z.record(text, json) as unknown as z.ZodType<JsonObject>;
const orNull = <T extends z.ZodType>(type: T) => z.union([type, z.null()]);
const hostKeys = z.array(z.strictObject({ type: text, blob: text }));
const optional = z.exactOptional;
const bastion = z.strictObject({
  name: text,
  address: text,
  user: optional(text),
  port: optional(z.number()),
  identityFiles: texts,
  hostKeys,
});
const secretReference = z.union([z.strictObject({ env: text }), z.strictObject({ file: text })]);
const hook = z.strictObject({
  command: texts,
  timeoutSeconds: z.number(),
  layer: text,
  env: optional(z.record(text, secretReference)),
});
const proxy = z.union([
  z.literal('none'),
  z.strictObject({ http: orNull(text), https: orNull(text), noProxy: texts, credentials: orNull(secretReference) }),
]);
const preparation = z.strictObject({
  proxy: optional(proxy),
  swap: orNull(z.literal('off')),
  kernelModules: orNull(texts),
  sysctls: orNull(z.record(text, text)),
  install: orNull(
    z.union([
      z.strictObject({
        kind: z.literal('packages'),
        version: text,
        runtime: orNull(text),
        extra: texts,
        repositories: z.array(
          z.strictObject({ name: text, url: text, suite: text, components: texts, key: orNull(text), keyFingerprints: texts }),
        ),
      }),
      z.strictObject({
        kind: z.literal('binaries'),
        files: z.array(z.strictObject({ name: text, source: text, sha256: text, mode: z.number(), path: text, isArchive: z.boolean() })),
        units: texts,
      }),
    ]),
  ),
});
const SCHEMA = z.strictObject({
  apiVersion: z.literal(API_VERSION),
  kind: z.literal(KIND),
  id: text,
  validity: z.strictObject({ createdAt: z.iso.datetime(), expiresAt: z.iso.datetime(), digest: text }),
  fleet: z.strictObject({ file: text, directory: text, name: orNull(text) }),
  cluster: z.strictObject({
    kubeconfig: orNull(text),
    context: orNull(text),
    configuration: orNull(text),
    endpoint: orNull(text),
    caFile: orNull(text),
    caCertHashes: texts,
    token: orNull(z.union([z.strictObject({ env: text }), z.strictObject({ file: text })])),
  }),
  server: text,
  takeOver: z.boolean(),
  allowPodLoss: optional(z.boolean()),
  allow: optional(z.enum(IMPACTS)),
  ignorePreflightErrors: texts,
  canary: optional(texts),
  changes: z.record(text, z.strictObject({ changes: z.array(object), deferred: z.array(object) })),
  overlays: z.record(text, z.strictObject({ source: text, content: object, layer: optional(text) })),
  hosts: z.array(
    z.strictObject({
      name: text,
      status: z.enum(['pending', 'unchanged', 'refused', 'unreachable', 'interrupted']),
      role: z.enum(['worker', 'control-plane']),
      groups: texts,
      ssh: z.strictObject({
        address: text,
        user: optional(text),
        port: optional(z.number()),
        identityFiles: texts,
        jumps: z.array(bastion),
        direct: z.boolean(),
        become: z.enum(['auto', 'sudo', 'none']),
        configFile: optional(text),
        transport: z.enum(['builtin', 'openssh']),
        hostKeys,
        connectTimeoutMs: optional(z.number()),
        commandTimeoutMs: optional(z.number()),
      }),
      nodeRegistration: z.strictObject({
        name: optional(text),
        criSocket: optional(text),
        taints: optional(
          z.array(
            z.strictObject({
              key: text,
              value: optional(text),
              effect: z.enum(['NoSchedule', 'PreferNoSchedule', 'NoExecute']),
              timeAdded: optional(text),
            }),
          ),
        ),
        kubeletExtraArgs: optional(z.array(z.strictObject({ name: text, value: text }))),
        droppedFlags: optional(texts),
        ignorePreflightErrors: optional(texts),
      }),
      declared: z.array(z.strictObject({ path: texts, value: json, source: text })),
      kubeletConfigDir: optional(z.literal(true)),
      preparation: optional(preparation),
      hooks: optional(z.strictObject({ beforeChange: orNull(hook), afterChange: orNull(hook) })),
      overlays: texts,
      changes: optional(text),
      operations: orNull(z.array(z.tuple([text, text]))),
      highestImpact: optional(orNull(z.enum(IMPACTS))),
      problems: optional(texts),
    }),
  ),
  highestImpact: optional(orNull(z.enum(IMPACTS))),
});

/**
 * Reads a saved plan.
 * @param file name in problems
 * @throws AppError PLAN_INVALID (exit code 2): not a plan, another version, or edited after saving
 */
export function readPlan(content: string, file: string): SavedPlan {
  if (FLEET_FILE.test(content)) throw notSaved(file);
  const read = SCHEMA.safeParse(parseJson(content, file));
  if (!read.success) {
    const [issue] = read.error.issues;
    throw invalid(file, `${issue?.path.join('.') || 'the file'}: ${issue?.message ?? 'is not a plan'}`);
  }
  const { id, validity, ...body } = read.data;
  const { digest, ...times } = validity;
  if (digestOf(body) !== id || digestOf({ id, ...times }) !== digest) throw invalid(file, 'the file was edited after saving');
  return read.data as unknown as SavedPlan;
}

/** Matches the kind of a fleet file, in YAML or JSON. */
const FLEET_FILE = new RegExp(`(?:^|[{,])[ \\t]{0,8}"?kind"?:[ \\t]{0,8}["']?${FLEET_KIND}["']?[ \\t]{0,8}(?:[,}#]|$)`, 'm');

function notSaved(file: string): AppError {
  return new AppError(
    {
      code: 'PLAN_INVALID',
      message: `${file} is a fleet file, not a saved plan`,
      hint: `Apply the fleet file with kubeletadm apply -f ${file}`,
    },
    { exitCode: 2 },
  );
}

function parseJson(content: string, file: string): unknown {
  try {
    return JSON.parse(content);
  } catch {
    throw invalid(file, 'not valid JSON');
  }
}

function invalid(file: string, why: string): AppError {
  return new AppError(
    { code: 'PLAN_INVALID', message: `${file} is not a valid saved plan: ${why}`, hint: 'Create a plan with kubeletadm plan --out FILE' },
    { exitCode: 2 },
  );
}

/** The hosts of a plan with operations, as in the fleet file. */
export function hostsToApply({ hosts, overlays, changes }: SavedPlan): readonly {
  readonly host: PlannedHost;
  readonly operations: Operations;
  /** The operations as shown in the plan, with placeholders such as `<node>`. */
  readonly planned: HostChanges;
}[] {
  const documents = new Map<string, NodeOverlay>();
  const documentOf = (key: string): { readonly document: NodeOverlay } => {
    const { source, content, layer }: PlannedOverlay = overlays[key] ?? { source: 'plan', content: {} };
    const known = documents.get(key);
    if (known !== undefined) return { document: known };
    const made = documentOfValue(content, source);
    const document = layer === undefined ? made : { ...made, layer };
    documents.set(key, document);
    return { document };
  };
  return hosts.flatMap(({ status, operations, overlays: keys, changes: key = '', ...host }) =>
    status !== 'pending' || operations === null
      ? []
      : [
          {
            host: { preparation: NO_PREPARATION, hooks: NO_HOOKS, ...host, overlays: keys.map(documentOf) },
            operations,
            planned: changes[key] ?? { changes: [], deferred: [] },
          },
        ],
  );
}
