import type { RunTime } from '../../base/clock.ts';
import { AppError, formatPosition, type Problem, usageError } from '../../base/errors.ts';
import type { LocalFiles } from '../../base/local-files.ts';
import type { Reporter } from '../../base/reporter.ts';
import type { RunSettings } from '../../host/run-settings.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { type KubeconfigRequest, type OpenClusterPorts, type OpenedCluster, openCluster } from '../../kubeadm/use-cases/open-cluster.ts';
import { DEFAULT_MINOR, type Minor } from '../../kubelet/catalogue/catalogue.ts';
import { loadCatalogue } from '../../kubelet/catalogue/load-catalogue.ts';
import { LAST_DYNAMIC_MINOR } from '../../kubelet/effective/dynamic-store.ts';
import { configSourceFailure } from '../../kubelet/layers/config-source.ts';
import { readValidatedMinor } from '../../kubelet/minor-option.ts';
import { validatePayload } from '../agent/validate-payload.ts';
import { type ConfigSigner, type SigningRequest, signConfig } from '../signing/statement.ts';
import type { NodeConfig } from '../status/node-config.ts';
import { applyPush, type PushInput, type PushPlan, planPush } from '../workflows/push-config.ts';
import { readNodes } from '../workflows/read-nodes.ts';

export interface PushedFileRequest extends PushInput {
  readonly file: string;
  /** Files that the payload references by a relative path, stored next to it in the ConfigMap. */
  readonly additionalFiles: readonly { readonly key: string; readonly file: string }[];
  /** Null: without a signature. */
  readonly signing: SigningRequest | null;
  readonly validation: ValidationRequest;
}

export type PushFilePorts = Pick<LocalFiles, 'input'> & ConfigSigner & Pick<RunTime, 'clock'>;

interface PlannedPush extends Pick<OpenedCluster, 'cluster' | 'warnings'> {
  readonly push: PushPlan;
}

export interface PushRequest {
  readonly pushed: PushedFileRequest;
  readonly cluster: KubeconfigRequest;
  readonly run: RunSettings;
}

/**
 * Plans to store a file as a ConfigMap.
 * @param use receives the plan, the cluster (null: a dry run without one) with warnings about it, and how to apply the plan
 * @throws the errors of `openCluster`, `planPushedFile` and the cluster
 */
export async function pushFile<Result>(
  services: OpenClusterPorts & PushFilePorts,
  { pushed, cluster: named, run }: PushRequest,
  reporter: Reporter,
  use: (planned: PlannedPush, apply: () => Promise<void>) => Promise<Result>,
): Promise<Result> {
  const text = await services.input.readText(pushed.file);
  const { cluster, warnings } = await openCluster(services, named, { ...run, writes: reporter });
  try {
    const push = await planPushedFile(services, cluster, pushed, { text, reporter });
    return await use({ push, cluster, warnings }, () => performPush(cluster as Cluster, push, reporter));
  } finally {
    await cluster?.close();
  }
}

/**
 * Validates a file for the nodes of the cluster, signs it on request, and plans its ConfigMap.
 * @param cluster null: a dry run without a cluster
 * @param given.text content of the file
 * @param given.nodeNames nodes of an assignment, for which the ConfigMap is signed. Absent: all nodes
 * @throws AppError USAGE, errors in the file, DYNAMIC_NOT_SIGNED, DYNAMIC_PAYLOAD_DIFFERS
 */
export async function planPushedFile(
  ports: PushFilePorts,
  cluster: Cluster | null,
  pushed: PushedFileRequest,
  { text, nodeNames, reporter }: { readonly text: string; readonly nodeNames?: readonly string[]; readonly reporter: Reporter },
): Promise<PushPlan> {
  const { namespace, name, key, signing } = pushed;
  const additional: Record<string, string> = {};
  for (const one of pushed.additionalFiles) additional[one.key] = await ports.input.readText(one.file);
  const issue = configSourceFailure({ namespace, name, kubeletConfigKey: key });
  if (issue !== null) throw usageError(issue.replace('kubeletConfigKey', 'key').replace(/^/, '--'));
  if (Object.hasOwn(additional, key)) throw usageError(`--beside ${key}: the ConfigMap already has this key`);
  const nodes = cluster === null ? [] : await readNodes(cluster, []);
  await requireGoodPayload(text, pushed.file, nodes, pushed.validation, reporter);
  const data = { ...additional, [key]: text };
  if (signing === null) return planPush(cluster, pushed, data);
  const validFor = signing.nodes ?? nodeNames ?? ['*'];
  const signed = await signConfig(ports, { namespace, name, key, nodes: validFor, data }, signing);
  return planPush(cluster, pushed, { ...additional, ...signed, [key]: text });
}

export async function performPush(cluster: Cluster, push: PushPlan, reporter: Reporter): Promise<void> {
  for (const warning of push.plan.warnings ?? []) reporter.report({ level: 'warning', ...warning });
  await applyPush(cluster, push);
  const where = `ConfigMap ${push.source.namespace}/${push.source.name}`;
  const change = push.plan.changes.at(-1);
  const message =
    change === undefined ? `unchanged: ${push.plan.noop ?? ''}` : `${change.kind === 'create-object' ? 'created' : 'updated'} ${where}`;
  reporter.report({ level: 'info', code: 'DYNAMIC_PUSHED', message });
}

export interface ValidationRequest {
  /** Undefined: the versions of the nodes. */
  readonly kubernetesVersion: string | undefined;
  /** Accept a configuration that the kubelet rejects. */
  readonly skipValidation: boolean;
}

/**
 * Validates a payload for the nodes that will read it: with `--kubernetes-version`, otherwise with the
 * versions of the nodes. Warnings are reported.
 * @throws AppError with every error (exit code 2), unless `--skip-validation`
 */
export async function requireGoodPayload(
  text: string,
  file: string,
  nodes: readonly NodeConfig[],
  { kubernetesVersion: chosen, skipValidation: skip }: ValidationRequest,
  reporter: Reporter,
): Promise<void> {
  const minors = chosen === undefined ? minorsOf(nodes) : [readValidatedMinor(chosen)];
  const native = nodes.length === 0 ? minors.some((minor) => minor <= LAST_DYNAMIC_MINOR) : nodes.some((node) => node.backend === 'native');
  const problems = await validatePayload(text, file, { minors, catalogue: await loadCatalogue(), native });
  const isError = ({ severity }: Problem): boolean => severity !== 'warning';
  for (const problem of problems) if (skip || !isError(problem)) report(reporter, problem);
  const errors = problems.filter(isError);
  if (errors.length > 0 && !skip) throw new AppError(errors, { exitCode: 2 });
}

function minorsOf(nodes: readonly NodeConfig[]): readonly Minor[] {
  const minors = [...new Set(nodes.flatMap(({ minor }) => minor ?? []))].sort((a, b) => a - b);
  return minors.length === 0 ? [DEFAULT_MINOR] : minors;
}

function report(reporter: Reporter, { code, message, hint, path, position }: Problem): void {
  const where = [position === undefined ? '' : formatPosition(position), path ?? ''].filter(Boolean).join(' ');
  const text = `${where === '' ? '' : `${where}: `}${message}${hint === undefined ? '' : `. ${hint}`}`;
  reporter.report({ level: 'warning', code, message: text });
}
