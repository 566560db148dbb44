import { type ExitCode, usageError } from '../base/errors.ts';
import type { Reporter } from '../base/reporter.ts';
import { applyPush, type PushPlan, planPush } from '../dynamic/workflows/push-config.ts';
import { readNodes } from '../dynamic/workflows/read-nodes.ts';
import { AGENT_NAMESPACE } from '../kube/agent-namespace.ts';
import type { Cluster } from '../kube/cluster.ts';
import { type ConfigSource, configSourceFailure, describeSource, formatConfigSource, isConfigMapKey } from '../kubelet/config-source.ts';
import type { CommandOptions } from './command.ts';
import { requireGoodPayload } from './dynamic-payload.ts';
import { showClusterPlan } from './dynamic-plan.ts';
import { openCluster } from './open-cluster.ts';
import { flagList, flagText, verbosityOf } from './read-options.ts';
import type { Services } from './services.ts';
import { formatOf, renderDocument } from './show-document.ts';

/** `dynamic push FILE`: prints `NAMESPACE/NAME/KEY`. */
export async function runDynamicPush(services: Services, args: readonly string[], options: CommandOptions): Promise<ExitCode> {
  const [file, ...more] = args;
  if (file === undefined || more.length > 0) throw usageError('one file is pushed at a time', "Name it; '-' is standard input");
  const reporter = services.reporter({ verbosity: verbosityOf(options), format: 'text' });
  const dryRun = options.dryRun === true;
  const text = await services.input.readText(file);
  const { cluster, warnings } = await openCluster(services, options, { dryRun, staged: false, writes: reporter });
  try {
    const push = await planPushedFile(services, { file, text, cluster, options, reporter });
    if (dryRun) return showClusterPlan(services, options, { phase: 'dynamic-push', plans: [push.plan], cluster, warnings });
    await performPush(cluster as Cluster, push, reporter);
    showPushed(services, options, push);
    return 0;
  } finally {
    await cluster?.close();
  }
}

interface PushFile {
  readonly file: string;
  readonly text: string;
  /** Null: a dry run without one. */
  readonly cluster: Cluster | null;
  readonly options: CommandOptions;
  readonly reporter: Reporter;
}

/** Judges a file for the nodes of the cluster and plans its ConfigMap. @throws AppError USAGE, what is wrong with the file, DYNAMIC_PAYLOAD_DIFFERS */
export async function planPushedFile(services: Services, { file, text, cluster, options, reporter }: PushFile): Promise<PushPlan> {
  const input = {
    namespace: flagText(options, 'namespace') ?? AGENT_NAMESPACE,
    name: flagText(options, 'name') ?? 'node-config',
    key: flagText(options, 'key') ?? 'kubelet',
    text,
    beside: await readBeside(services, flagList(options, 'beside')),
    appendHash: options.appendHash !== false,
    inPlace: options.inPlace === true,
  };
  const issue = configSourceFailure({ namespace: input.namespace, name: input.name, kubeletConfigKey: input.key });
  if (issue !== null) throw usageError(issue.replace('kubeletConfigKey', 'key').replace(/^/, '--'));
  if (Object.hasOwn(input.beside, input.key)) throw usageError(`--beside ${input.key}: that is the key of the payload`);
  const nodes = cluster === null ? [] : await readNodes(cluster, []);
  await requireGoodPayload(text, file, { nodes, options, reporter });
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

function showPushed(services: Services, options: CommandOptions, { source, plan }: PushPlan): void {
  const format = formatOf(options);
  const done = { 'create-object': 'created', 'update-object': 'updated' }[plan.changes.at(-1)?.kind as string] ?? 'unchanged';
  services.output.stdout(format === 'text' ? `${describeSource(source)}\n` : renderDocument(document(source, done), format));
}

function document(source: ConfigSource, result: string): object {
  return { apiVersion: 'kubeletadm.dev/v1alpha1', kind: 'PushedConfig', result, configSource: formatConfigSource(source) };
}

async function readBeside(services: Services, given: readonly string[]): Promise<Readonly<Record<string, string>>> {
  const files: Record<string, string> = {};
  for (const one of given) {
    const [, key = '', file = ''] = /^([^=]*)=(.*)$/s.exec(one) ?? [];
    if (file === '' || !isConfigMapKey(key))
      throw usageError(`--beside ${one}: no key=file`, 'Write it like --beside resolv.conf=./resolv.conf');
    files[key] = await services.input.readText(file);
  }
  return files;
}
