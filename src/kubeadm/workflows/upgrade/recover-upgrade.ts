import { AppError, isAppError } from '../../../base/errors.ts';
import { revealText } from '../../../base/text/secret.ts';
import { quickAtFirst, waitUntil } from '../../../base/wait-until.ts';
import { combineFacts, defineFact } from '../../../host/facts/fact.ts';
import { fileFacts } from '../../../host/facts/file-facts.ts';
import type { FileFact, HttpFact } from '../../../host/facts/query.ts';
import { observe } from '../../../host/observe.ts';
import { definePhase, type PhaseContext } from '../../../host/phase.ts';
import type { HostChange } from '../../../host/plan/change.ts';
import type { Workflow } from '../../../host/run-workflow.ts';
import { manifestPath, type StaticPodName } from '../../control-plane/paths.ts';
import { readManifest } from '../../upgrade/static-pod-state.ts';
import { decodeUpgradeRecord, manifestBackupPath, UPGRADE_RECORD_PATH, type UpgradeRecord } from '../../upgrade/upgrade-record.ts';
import { KUBEADM_CONFIG_REF } from '../cluster-baseline.ts';
import type { ApiAccess } from '../control-plane/api-access.ts';

export interface RecoverUpgradeOptions {
  readonly record: UpgradeRecord;
  readonly api: ApiAccess;
  readonly timeoutMs: number;
}

const COMPONENTS = ['etcd', 'kube-apiserver', 'kube-controller-manager', 'kube-scheduler'] as const satisfies readonly StaticPodName[];
const NAME = 'control-plane/recover';

/**
 * Restores all manifests of before an interrupted upgrade, for a host whose API server does not answer: the interrupted
 * run could not roll back its last change. An upgrade cannot continue without the API server.
 */
export const recoverUpgradeWorkflow: Workflow<RecoverUpgradeOptions, RecoverUpgradeOptions> = {
  name: 'upgrade',
  phases: [
    definePhase<RecoverUpgradeOptions, ReadonlyMap<string, FileFact | null>>({
      name: NAME,
      short: 'Restore the static Pods of before the interrupted upgrade',
      observe: ({ host, signal }, { record }) => observe(host, fileFacts(COMPONENTS.flatMap((name) => pathsOf(record, name))), signal),
      plan: (files, { record }) => {
        const changes = COMPONENTS.flatMap((name) => restored(files, record, name));
        return changes.length === 0 ? { changes, noop: 'the manifests are those of before the upgrade' } : { changes };
      },
      verify: async (context, { record, api, timeoutMs }, files) => {
        const manifests = COMPONENTS.map((name) => [name, contentOf(files, pathsOf(record, name))] as const);
        await waitForApi(context, { api, timeoutMs, urls: manifests.map(([name, text]) => readManifest(text, name).healthUrl) });
      },
    }),
  ],
  prepare: async (_, options) => ({ input: options, warnings: [], refusals: [] }),
};

function pathsOf({ backup }: UpgradeRecord, name: StaticPodName): readonly [current: string, before: string] {
  return [manifestPath(name), manifestBackupPath(backup, name)];
}

/** The manifest after the recovery. */
function contentOf(files: ReadonlyMap<string, FileFact | null>, [current, before]: readonly [string, string]): string {
  return files.get(before)?.content ?? files.get(current)?.content ?? '';
}

function restored(files: ReadonlyMap<string, FileFact | null>, record: UpgradeRecord, name: StaticPodName): readonly HostChange[] {
  const [path, from] = pathsOf(record, name);
  const [current, before] = [files.get(path) ?? null, files.get(from) ?? null];
  if (before?.content === undefined || current?.content === before.content) return [];
  const reason = `the upgrade to ${record.version} was interrupted, and the API server does not answer`;
  const kept = { content: before.content, mode: current?.mode ?? 0o600, owner: current?.owner ?? 'root:root' };
  const found = current === null ? null : { content: current.content ?? '', mode: current.mode, owner: current.owner };
  return [{ kind: 'write-file', path, ...kept, action: current === null ? 'create' : 'update', before: found, reason }];
}

/** The upgrade that an interrupted run left on a host; null: none. */
export async function interruptedUpgrade({ host, signal }: PhaseContext): Promise<UpgradeRecord | null> {
  const files = await observe(host, combineFacts({ files: fileFacts([UPGRADE_RECORD_PATH]) }), signal);
  const text = files.files.get(UPGRADE_RECORD_PATH)?.content;
  return text === undefined ? null : decodeUpgradeRecord(revealText(text));
}

/**
 * Waits until the API server serves the configuration of the cluster, which also needs etcd.
 * @throws AppError API_SERVER_NOT_UP after the time limit
 */
export async function waitForApi(
  context: PhaseContext,
  { api, timeoutMs, urls = [] }: { readonly api: ApiAccess; readonly timeoutMs: number; readonly urls?: readonly (string | null)[] },
): Promise<void> {
  await waitUntil<void, string>(
    { ...context, phase: NAME },
    {
      probe: async () => {
        const pending = (await apiIssue(context, api)) ?? (await healthIssue(context, urls));
        return pending === null ? { done: undefined } : { pending };
      },
      timeoutMs,
      pauseMs: quickAtFirst({ quickMs: 500, forMs: 30_000, slowMs: 2_000 }),
      describe: (issue, waitedMs) => `waiting for the API server, ${Math.round(waitedMs / 1000)} s: ${issue}`,
      timedOut: (issue, waitedMs) => {
        const message = `the API server does not answer after ${Math.round(waitedMs / 1000)}s: ${issue}`;
        const hint = 'See crictl ps -a, crictl logs and journalctl -u kubelet on the host';
        throw new AppError({ host: context.host.name, code: 'API_SERVER_NOT_UP', message, hint });
      },
    },
  );
}

async function apiIssue(context: PhaseContext, api: ApiAccess): Promise<string | null> {
  try {
    const cluster = await api.reach(context);
    if (cluster === null) return 'it is unreachable';
    await cluster.get(KUBEADM_CONFIG_REF);
    return null;
  } catch (error) {
    if (!isAppError(error)) throw error;
    return error.problems[0]?.message ?? 'it does not answer';
  }
}

async function healthIssue({ host, signal }: PhaseContext, urls: readonly (string | null)[]): Promise<string | null> {
  const asked = urls.filter((url) => url !== null);
  const facts = Object.fromEntries(
    asked.map((url) => [url, defineFact({ get: { kind: 'http', url, timeoutSeconds: 5 } }, ({ get }): HttpFact => get)]),
  );
  const answers = await observe(host, combineFacts(facts), signal);
  const unhealthy = asked.filter((url) => {
    const answer = answers[url];
    return answer === undefined || 'error' in answer || answer.status >= 500;
  });
  return unhealthy.length === 0 ? null : `${unhealthy.join(', ')} is not healthy`;
}
