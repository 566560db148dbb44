import * as z from 'zod';
import { AppError } from '../../base/errors.ts';
import type { JsonObject } from '../../base/json.ts';
import { memoized } from '../../base/memoized.ts';
import { documentOfValue } from '../../codec/document-of-value.ts';
import { digestOf } from '../../codec/json-text.ts';
import { sourceToJson } from '../../codec/source.ts';
import { type HostPlan, impactOfPlan } from '../../host/plan/document.ts';
import { type HostChanges, sharedChangesOf } from '../../host/plan/fold.ts';
import { DEFAULT_ALLOWED, IMPACTS, highestImpact as worstImpact } from '../../host/plan/impact.ts';
import { diffEqualTextsOnce } from '../../host/plan/text-diff.ts';
import type { RunSettings } from '../../host/run-settings.ts';
import type { NodeOverlay } from '../../kubeadm/render/config-drop-ins.ts';
import { preparedRollout } from '../../maintenance/gates/rollout-settings.ts';
import {
  type FleetCluster,
  fleetCluster,
  jsonObject,
  type PlannedHost,
  plannedSettings,
  plannedSettingsOf,
  text,
  texts,
} from '../file/model.ts';
import { FLEET_KIND } from '../file/schema.ts';
import { type Operations, operationsOf } from './operations.ts';

const API_VERSION = 'kubeletadm.dev/v1alpha1';
const KIND = 'FleetPlan';

const optional = z.exactOptional;
/** The highest impact of the changes; null: no running kubelet is changed. */
const highestImpact = optional(z.nullable(z.enum(IMPACTS)));

const runSettings = {
  /** Absent: a host whose change would end pods is refused. */
  allowPodLoss: optional(z.boolean()),
  /** The most disruptive impact that the plan was permitted to have. Absent: `DEFAULT_ALLOWED`. */
  allow: optional(z.enum(IMPACTS)),
  ignorePreflightErrors: texts,
};

/** A plan in its saved and printed form: a stable interface without secrets. */
const savedPlan = z
  .strictObject({
    apiVersion: z.literal(API_VERSION),
    kind: z.literal(KIND),
    /** Digest of everything except `validity`: equal plans have equal digests, and an edited plan is refused. */
    id: text,
    validity: z
      .strictObject({
        createdAt: z.iso.datetime(),
        /** RFC 3339: from then on the plan is refused. */
        expiresAt: z.iso.datetime(),
        /** Digest of the plan's `id` and both times: an edited time is refused. */
        digest: text,
      })
      .readonly(),
    fleet: z.strictObject({ file: text, directory: text, name: z.nullable(text) }).readonly(),
    cluster: fleetCluster,
    server: text,
    /** Command-line flags that affect the operations. */
    takeOver: z.boolean(),
    ...runSettings,
    /** The hosts that are changed first; empty: none. Absent: apply chooses them. */
    canary: optional(texts),
    /** Hosts changed at once: a number or a percentage, as in `--max-unavailable`. Absent: apply chooses. */
    maxUnavailable: optional(text),
    /** Of the hosts after the canary, by the zones of their Nodes. Absent: the order of the file. */
    order: optional(z.enum(['zone', 'spread'])),
    /** The names of the hosts in the batches of a run without failures. Absent: the canary, and then all others. */
    batches: optional(z.array(texts).readonly()),
    /** Gates and windows between batches. Absent: none. */
    rollout: optional(preparedRollout),
    /** Shared content of hosts is stored once. */
    changes: z
      .record(text, z.strictObject({ changes: z.array(jsonObject).readonly(), deferred: z.array(jsonObject).readonly() }).readonly())
      .readonly(),
    /** A layer; `layer` names its owner for drop-in files of `--config-dir`. */
    overlays: z.record(text, z.strictObject({ source: text, content: jsonObject, layer: optional(text) }).readonly()).readonly(),
    hosts: z
      .array(
        z
          .strictObject({
            ...plannedSettings,
            status: z.enum(['pending', 'unchanged', 'refused', 'unreachable', 'interrupted']),
            /** Keys of `overlays`. */
            overlays: texts,
            /** Key of `changes`; host-specific parts are placeholders such as `<node>`. */
            changes: optional(text),
            /** The exact operations; null: not determined. */
            operations: z.nullable(z.array(z.tuple([text, text]).readonly()).readonly()),
            highestImpact,
            problems: optional(texts),
          })
          .readonly(),
      )
      .readonly(),
    highestImpact,
    /** Of the printed plan only: apply ignores it. */
    drainForecast: optional(jsonObject),
  })
  .readonly();

export type SavedPlan = Omit<z.infer<typeof savedPlan>, 'drainForecast'>;
export type SavedHost = SavedPlan['hosts'][number];
export type PlanContext = Omit<SavedPlan, 'apiVersion' | 'kind' | 'id' | 'validity' | 'changes' | 'overlays' | 'hosts' | 'highestImpact'>;

export interface PlanOutcome {
  readonly status: SavedHost['status'];
  readonly plan: HostPlan | null;
  readonly problems: readonly string[];
}

/** The settings of a run that a saved plan keeps. */
export function savedRun({ podLoss, allow, ignorePreflightErrors }: RunSettings): Pick<SavedPlan, keyof typeof runSettings> {
  return { ...(podLoss === 'warn' ? { allowPodLoss: true } : {}), allow: allow ?? DEFAULT_ALLOWED, ignorePreflightErrors };
}

/** The settings of the run that applies a plan: the run's own `allow` has precedence. */
export function plannedRun({ allowPodLoss, allow, ignorePreflightErrors }: SavedPlan, run: RunSettings): RunSettings {
  return { ...run, ignorePreflightErrors, allow: run.allow ?? allow, ...(allowPodLoss === true ? { podLoss: 'warn' } : {}) };
}

export const PLAN_VALID_FOR_MS = 24 * 3_600_000;
/** The same for a signed plan, whose file is a permission to change the hosts. */
export const SIGNED_PLAN_VALID_FOR_MS = 3_600_000;

/** Builds the plan to save, without the positions and paths that only messages use. Equal hosts, facts, files and times give identical bytes. */
export function savePlan(
  context: PlanContext,
  hosts: readonly (readonly [PlannedHost, PlanOutcome])[],
  { createdAt, validForMs }: { readonly createdAt: Date; readonly validForMs: number },
): SavedPlan {
  const changes = new Map<string, HostChanges>();
  const overlays = new Map<string, SavedPlan['overlays'][string]>();
  const keysOfOverlays = (isSplit: boolean): ((document: NodeOverlay) => string) =>
    memoized(({ root, file: source, layer }) => {
      const content = (root === null ? {} : sourceToJson(root)) as JsonObject;
      const overlay = { source, content, ...(isSplit && layer !== undefined ? { layer } : {}) };
      const key = digestOf(overlay);
      overlays.set(key, overlay);
      return key;
    });
  const [splitKey, mergedKey] = [keysOfOverlays(true), keysOfOverlays(false)];
  const diffTexts = diffEqualTextsOnce();
  const keyOfChanges = memoized((shared: string): string => {
    const key = digestOf(shared);
    changes.set(key, JSON.parse(shared) as HostChanges);
    return key;
  });
  const saved = hosts.map(([host, { status, plan, problems }]): SavedHost => {
    const { name, ssh, ...settings } = plannedSettingsOf(host);
    const key = status === 'pending' && plan !== null ? keyOfChanges(sharedChangesOf(plan, diffTexts)) : null;
    return {
      name,
      status,
      ...settings,
      ssh,
      overlays: host.overlays.map(({ document }) => (settings.kubeletConfigDir === true ? splitKey : mergedKey)(document)),
      ...(key === null ? {} : { changes: key }),
      operations: plan === null ? null : operationsOf(plan),
      highestImpact: plan === null ? null : impactOfPlan(plan),
      ...(problems.length === 0 ? {} : { problems }),
    };
  });
  const { kubeconfigSource: _, ...cluster }: FleetCluster = context.cluster;
  const body = {
    apiVersion: API_VERSION,
    kind: KIND,
    ...context,
    cluster,
    changes: Object.fromEntries(changes),
    overlays: Object.fromEntries(overlays),
    hosts: saved,
    highestImpact: worstImpact(saved.map((host) => host.highestImpact)),
  } as const;
  const id = digestOf(body);
  const times = { createdAt: createdAt.toISOString(), expiresAt: new Date(createdAt.getTime() + validForMs).toISOString() };
  return { id, validity: { ...times, digest: digestOf({ id, ...times }) }, ...body };
}

export function isExpired({ validity }: Pick<SavedPlan, 'validity'>, now: Date): boolean {
  return now.getTime() >= Date.parse(validity.expiresAt);
}

/**
 * Reads a saved plan.
 * @param file name in problems
 * @throws AppError PLAN_INVALID (exit code 2): not a plan, another version, or edited after saving
 */
export function readPlan(content: string, file: string): SavedPlan {
  if (FLEET_FILE.test(content)) throw notSaved(file);
  const read = savedPlan.safeParse(parseJson(content, file));
  if (!read.success) {
    const [issue] = read.error.issues;
    throw invalid(file, `${issue?.path.join('.') || 'the file'}: ${issue?.message ?? 'is not a plan'}`);
  }
  const { drainForecast: _, ...saved } = read.data;
  const { id, validity, ...body } = saved;
  const { digest, ...times } = validity;
  if (digestOf(body) !== id || digestOf({ id, ...times }) !== digest) throw invalid(file, 'the file was edited after saving');
  return saved;
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
  const overlayOf = memoized((key: string): { readonly document: NodeOverlay } => {
    const { source, content, layer }: SavedPlan['overlays'][string] = overlays[key] ?? { source: 'plan', content: {} };
    const document = documentOfValue(content, source);
    return { document: layer === undefined ? document : { ...document, layer } };
  });
  return hosts.flatMap(({ status, operations, overlays: keys, changes: key = '', ...host }) =>
    status !== 'pending' || operations === null
      ? []
      : [
          {
            host: { ...host, overlays: keys.map(overlayOf) },
            operations,
            planned: changes[key] ?? { changes: [], deferred: [] },
          },
        ],
  );
}
