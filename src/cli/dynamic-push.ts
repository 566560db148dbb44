import { type ExitCode, usageError } from '../base/errors.ts';
import type { Reporter } from '../base/reporter.ts';
import { applyPush, type PushPlan, planPush } from '../dynamic/workflows/push-config.ts';
import { readNodes } from '../dynamic/workflows/read-nodes.ts';
import type { Cluster } from '../kube/cluster.ts';
import { type KubeconfigRequest, openCluster } from '../kubeadm/use-cases/open-cluster.ts';
import { type ConfigSource, configSourceFailure, describeSource, formatConfigSource } from '../kubelet/config-source.ts';
import { requireGoodPayload, type ValidationRequest } from './dynamic-payload.ts';
import { showClusterPlan } from './dynamic-plan.ts';
import type { Services } from './services.ts';
import { type DocumentFormat, renderDocument } from './show-document.ts';
import type { PlanRequest } from './show-plan.ts';

/** The ConfigMap that a file is stored in. */
export interface PushedFileRequest {
  readonly file: string;
  readonly namespace: string;
  /** Without the hash. */
  readonly name: string;
  /** Of the payload. */
  readonly key: string;
  /** Files that the payload references by a relative path, by key. */
  readonly beside: readonly BesideFile[];
  readonly appendHash: boolean;
  readonly inPlace: boolean;
  readonly validation: ValidationRequest;
}

/** A file that is stored beside the payload. */
export interface BesideFile {
  readonly key: string;
  readonly file: string;
}

/** `dynamic push FILE`. */
export interface DynamicPushRequest {
  readonly pushed: PushedFileRequest;
  readonly cluster: KubeconfigRequest;
  readonly plan: PlanRequest;
}

/** `dynamic push FILE`: prints `NAMESPACE/NAME/KEY`. */
export async function runDynamicPush(services: Services, { pushed, cluster: named, plan }: DynamicPushRequest): Promise<ExitCode> {
  const { dryRun } = plan;
  const reporter = services.reporter({ verbosity: plan.verbosity, format: 'text' });
  const text = await services.input.readText(pushed.file);
  const { cluster, warnings } = await openCluster(services, named, { dryRun, staged: false, writes: reporter });
  try {
    const push = await planPushedFile(services, { pushed, text, cluster, reporter });
    if (dryRun) return showClusterPlan(services, plan, { phase: 'dynamic-push', plans: [push.plan], cluster, warnings });
    await performPush(cluster as Cluster, push, reporter);
    showPushed(services, plan.format, push);
    return 0;
  } finally {
    await cluster?.close();
  }
}

interface PushFile {
  readonly pushed: PushedFileRequest;
  readonly text: string;
  /** Null: a dry run without one. */
  readonly cluster: Cluster | null;
  readonly reporter: Reporter;
}

/** Judges a file for the nodes of the cluster and plans its ConfigMap. @throws AppError USAGE, what is wrong with the file, DYNAMIC_PAYLOAD_DIFFERS */
export async function planPushedFile(services: Services, { pushed, text, cluster, reporter }: PushFile): Promise<PushPlan> {
  const input = {
    namespace: pushed.namespace,
    name: pushed.name,
    key: pushed.key,
    text,
    beside: await readBeside(services, pushed.beside),
    appendHash: pushed.appendHash,
    inPlace: pushed.inPlace,
  };
  const issue = configSourceFailure({ namespace: input.namespace, name: input.name, kubeletConfigKey: input.key });
  if (issue !== null) throw usageError(issue.replace('kubeletConfigKey', 'key').replace(/^/, '--'));
  if (Object.hasOwn(input.beside, input.key)) throw usageError(`--beside ${input.key}: that is the key of the payload`);
  const nodes = cluster === null ? [] : await readNodes(cluster, []);
  await requireGoodPayload(text, pushed.file, { nodes, validation: pushed.validation, reporter });
  return planPush(cluster, input);
}

/** Applies it and says so. */
export async function performPush(cluster: Cluster, push: PushPlan, reporter: Reporter): Promise<void> {
  for (const warning of push.plan.warnings ?? []) reporter.report({ level: 'warning', ...warning });
  await applyPush(cluster, push);
  const where = `ConfigMap ${push.source.namespace}/${push.source.name}`;
  const change = push.plan.changes.at(-1);
  const message =
    change === undefined ? `nothing to do: ${push.plan.noop ?? ''}` : `${change.kind === 'create-object' ? 'created' : 'updated'} ${where}`;
  reporter.report({ level: 'info', code: 'DYNAMIC_PUSHED', message });
}

function showPushed(services: Services, format: DocumentFormat, { source, plan }: PushPlan): void {
  const done = { 'create-object': 'created', 'update-object': 'updated' }[plan.changes.at(-1)?.kind as string] ?? 'unchanged';
  services.output.stdout(format === 'text' ? `${describeSource(source)}\n` : renderDocument(document(source, done), format));
}

function document(source: ConfigSource, result: string): object {
  return { apiVersion: 'kubeletadm.dev/v1alpha1', kind: 'PushedConfig', result, configSource: formatConfigSource(source) };
}

async function readBeside(services: Services, given: readonly BesideFile[]): Promise<Readonly<Record<string, string>>> {
  const files: Record<string, string> = {};
  for (const { key, file } of given) files[key] = await services.input.readText(file);
  return files;
}
